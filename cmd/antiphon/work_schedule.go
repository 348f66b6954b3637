// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// workScheduleCommand is antiphon work schedule.
type workScheduleCommand struct {
	Add    workScheduleAddCommand    `cmd:"" help:"Leave work at certain times, without a client."`
	List   workScheduleListCommand   `cmd:"" help:"List the schedules: when they fire next, and what became of the last time."`
	Remove workScheduleRemoveCommand `cmd:"" help:"Remove a schedule. Work that it has left stays."`
}

// workScheduleAddCommand is antiphon work schedule add.
type workScheduleAddCommand struct {
	Name  string `arg:"" help:"The name of the schedule."`
	Cron  string `arg:"" help:"The times: minute, hour, day of the month, month and day of the week, such as '30 9 * * MON-FRI', or @hourly, @daily, @weekly or @monthly."`
	File  string `arg:"" help:"The agent's file."`
	Input string `arg:"" optional:"" help:"What to say. Default: the file's own question."`

	Zone     string   `placeholder:"ZONE" help:"The time zone of the times, such as Europe/Berlin. Default: UTC."`
	Session  string   `placeholder:"NAME" help:"Go on with this session each time. Default: a new session each time, named after the schedule and the time."`
	Owner    string   `placeholder:"OWNER" help:"The owner of the sessions."`
	Tenant   string   `placeholder:"TENANT" help:"Whose work it is, for shares and limits."`
	Priority int      `placeholder:"N" help:"Work with a higher number is done sooner, within a tenant."`
	Needs    []string `placeholder:"LABEL" sep:"," help:"Labels that a worker must have."`
	placeFlag
	Overlap   string `enum:"skip,start" default:"skip" placeholder:"RULE" help:"If the last work is not done yet: skip this time (the default), or start nevertheless."`
	Missed    string `enum:"once,skip" default:"once" placeholder:"RULE" help:"If no worker ran at the time: make up for it once (the default), or skip it."`
	Approvals string `enum:"wait,refuse" default:"wait" placeholder:"RULE" help:"Calls that need an approval wait for it (the default), or are refused."`
}

// Run adds a schedule.
func (c *workScheduleAddCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if err := notAgent(c.File); err != nil {
		return usage(err)
	}
	cfg, err := workConfig(std, env)
	if err != nil {
		return err
	}
	place, err := c.place()
	if err != nil {
		return usage(err)
	}
	if place != nil {
		c.Needs = append(c.Needs, place.Needs()...)
	}
	cfg.File = c.File
	all := work.sessions()
	return all.opened(ctx, env, true, func(in keeper) error {
		cfg.Store = in
		s, err := worker.AddSchedule(ctx, cfg, worker.Schedule{
			Name: c.Name, Cron: c.Cron, Zone: c.Zone, Owner: c.Owner, By: person.AccountName(), Session: c.Session, Input: c.Input,
			Tenant: c.Tenant, Priority: c.Priority, Needs: c.Needs, Overlap: c.Overlap == "start", SkipMissed: c.Missed == "skip", Refuse: c.Approvals == "refuse",
		})
		switch {
		case errors.Is(err, session.ErrExists):
			return usage(fmt.Errorf("there is a schedule %s already; antiphon work schedule remove %s", quoted(c.Name), quoted(c.Name)))
		case errors.Is(err, errors.ErrUnsupported):
			return usage(err)
		case err != nil:
			return err
		}
		return all.told(std, scheduleRowOf(s), "%s: fires first at %s", s.Name, timeIn(s.Zone, s.Due))
	})
}

// scheduleRow is a schedule as commands print it.
type scheduleRow struct {
	worker.Schedule
	File  string    `json:"file"`
	Agent string    `json:"agent"`
	Next  time.Time `json:"next,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	Note  string    `json:"note,omitempty"`
}

func scheduleRowOf(s worker.Scheduled) scheduleRow {
	return scheduleRow{s.Schedule, s.Path, s.Agent, s.Due, s.Fired, s.Note}
}

// timeIn returns a time as a clock of a zone shows it. "" is UTC.
func timeIn(zone string, at time.Time) string {
	in, err := time.LoadLocation(zone)
	if err != nil { // the zone is not known here
		in = time.UTC
	}
	return at.In(in).Format("2006-01-02 15:04:05 MST")
}

// workScheduleListCommand is antiphon work schedule list.
type workScheduleListCommand struct{}

// Run lists.
func (c *workScheduleListCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		list, err := worker.Schedules(ctx, in)
		if errors.Is(err, errors.ErrUnsupported) {
			err = usage(err)
		}
		if err != nil && len(list) == 0 {
			return err
		}
		rows := []scheduleRow{}
		for _, s := range list {
			rows = append(rows, scheduleRowOf(s))
		}
		if all.JSON {
			return cmp.Or(all.printJSON(std, rows), err)
		}
		if len(rows) == 0 {
			fmt.Fprintln(std.err, "antiphon: there are no schedules; antiphon work schedule add makes one")
			return nil
		}
		w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tTIMES\tZONE\tNEXT\tOWNER\tFILE\tLAST TIME")
		for _, r := range rows {
			next := "never"
			if !r.Next.IsZero() {
				next = timeIn(r.Zone, r.Next)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", show.Visible(r.Name), show.Visible(r.Cron), show.Visible(cmp.Or(r.Zone, "UTC")), next,
				show.Visible(cmp.Or(r.Owner, "-")), show.Visible(r.File), show.Printable(all.hide(cmp.Or(r.Note, "-"))))
		}
		return cmp.Or(w.Flush(), err) // of those that are damaged
	})
}

// workScheduleRemoveCommand is antiphon work schedule remove.
type workScheduleRemoveCommand struct {
	Name string `arg:"" help:"The name of the schedule."`
}

// Run removes a schedule.
func (c *workScheduleRemoveCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		q, err := as[queue.Schedules](in, "keep schedules")
		if err != nil {
			return err
		}
		if err := q.Unschedule(ctx, c.Name); errors.Is(err, session.ErrNotFound) {
			return usage(fmt.Errorf("there is no schedule %s; antiphon work schedule list", quoted(c.Name)))
		} else if err != nil {
			return err
		}
		return all.told(std, c.Name, "%s: removed", c.Name)
	})
}
