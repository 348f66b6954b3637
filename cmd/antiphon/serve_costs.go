// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// warnOfCosts says which keys have a limit of cost, and which models have no price, so that it does not limit them.
func (c *serveCommand) warnOfCosts(ctx context.Context, std stdio, to io.Writer, before string, env environment, ups []gateway.Upstream) error {
	keys, err := c.keysFlag.keys(env)
	if err != nil {
		return err
	}
	list, err := keys.List()
	if err != nil {
		return usage(err)
	}
	var limited []string
	for i := range list {
		if list[i].Limits.Cost > 0 && list[i].Valid(time.Now()) {
			limited = append(limited, show.Visible(list[i].Name))
		}
	}
	if len(limited) == 0 || c.Price != "" {
		return nil
	}
	models, err := c.withoutPrice(ctx, std, env, ups)
	if err != nil || len(models) == 0 {
		return err
	}
	_, err = fmt.Fprintf(to, "%sthe limit of cost of %s does not limit %s, because no price is known; give --price, or prices in the settings\n",
		before, strings.Join(limited, ", "), strings.Join(models, ", "))
	return err
}

// withoutPrice returns the models that have no price, each as text for people. The prices of agents at workers are
// those of the workers.
func (c *serveCommand) withoutPrice(ctx context.Context, std stdio, env environment, ups []gateway.Upstream) (list []string, err error) {
	_, price, err := c.prices(env)
	if err != nil {
		return nil, err
	}
	if len(c.Files) > 0 && !c.workers {
		files, err := c.files("model")
		if err != nil {
			return nil, err
		}
		cfg, err := c.config(ctx, std, env)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			cfg.File = file
			url, model, err := host.Address(ctx, cfg)
			if err != nil {
				continue // it is not served
			}
			if _, known := price(model, url); !known {
				list = append(list, "the model "+show.Visible(modelName(file)))
			}
		}
	}
	for _, u := range ups {
		url := dialect.Client{Config: u.Config, Dialect: u.Dialect}.About().URL
		name, of := u.Models, "the model "+u.Models
		if name == "" || strings.HasSuffix(name, "*") || strings.HasSuffix(name, "/") { // one price is enough to know that some have one
			name, of = "gpt-5.1", "the models of "+url
			if env["ANTIPHON_PRICES"] != "" {
				continue
			}
		}
		if _, known := price(name, url); !known {
			list = append(list, show.Visible(of))
		}
	}
	return list, nil
}
