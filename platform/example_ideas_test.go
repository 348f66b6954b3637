// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/platform"
	"github.com/antiphon-go/antiphon/responses"
)

// client returns a client of a stub. A program writes
// &platform.Client{Key: endpoint.NewKey(os.Getenv("OPENAI_API_KEY"))}.
func client(stub *agenttest.Platform) (*platform.Client, func()) {
	srv := httptest.NewServer(stub)
	return &platform.Client{BaseURL: srv.URL, HTTP: srv.Client(), Retry: endpoint.Retry{Base: 1}}, srv.Close
}

// A client of responses is also a client of the rest: both types have the same fields.
func Example() {
	srv := httptest.NewServer(&agenttest.Platform{Models: []string{"small", "large"}})
	defer srv.Close()
	model := &responses.Client{BaseURL: srv.URL, HTTP: srv.Client()}

	for m, err := range (*platform.Client)(model).Models(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.ID)
	}
	// Output:
	// small
	// large
}

// Vectors of similar texts point in similar directions.
func ExampleClient_Embed() {
	c, end := client(&agenttest.Platform{})
	defer end()
	v, err := c.Embed(context.Background(), &platform.EmbedRequest{
		Model: "text-embedding-3-small",
		Input: []string{"green tea", "black tea", "a red car"},
	})
	if err != nil {
		log.Fatal(err)
	}
	likeness := func(a, b []float32) (sum float32) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	list := v.Vectors()
	fmt.Printf("%.1f %.1f\n", likeness(list[0], list[1]), likeness(list[0], list[2]))
	// Output: 0.5 0.0
}

// Files are sent while they are read. The program opens them: the package reads no path.
func ExampleClient_Upload() {
	c, end := client(&agenttest.Platform{})
	defer end()
	ctx := context.Background()
	file, err := c.Upload(ctx, &platform.Upload{
		Source: platform.Source{Name: "notes.txt", Type: "text/plain", Content: strings.NewReader("Tea is green.")}, // or an *os.File
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(file.Filename, file.Bytes, file.Purpose)

	content, err := c.FileContent(ctx, file.ID, 1<<20) // at most 1 MiB
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := io.Copy(os.Stdout, content); err != nil {
		log.Fatal(err) // broken off, or too large
	}
	fmt.Println()
	fmt.Println(c.DeleteFile(ctx, file.ID))
	// Output:
	// notes.txt 13 user_data
	// Tea is green.
	// <nil>
}

// A vector store splits and indexes files. Attaching one only begins the work.
func ExampleClient_SearchStore() {
	c, end := client(&agenttest.Platform{Polls: 2})
	defer end()
	if err := drinks(context.Background(), c); err != nil {
		log.Fatal(err)
	}
	// Output:
	// completed
	// drinks.txt 0.29 Coffee is black.
}

func drinks(ctx context.Context, c *platform.Client) error {
	file, err := c.Upload(ctx, &platform.Upload{
		Source: platform.Source{Name: "drinks.txt", Content: strings.NewReader("Tea is green.\n\nCoffee is black.")},
	})
	if err != nil {
		return err
	}
	store, err := c.CreateStore(ctx, &platform.StoreRequest{Name: "drinks"})
	if err != nil {
		return err
	}
	if _, err := c.AttachFile(ctx, store.ID, &platform.AttachRequest{FileID: file.ID, Attributes: `{"kind":"hot"}`}); err != nil {
		return err
	}
	attached, err := c.WaitStoreFile(ctx, store.ID, file.ID)
	if err != nil {
		return err // such as a file that cannot be read
	}
	fmt.Println(attached.Status)

	found, err := c.SearchStore(ctx, store.ID, &platform.SearchRequest{
		Query:  []string{"what color has coffee"},
		Filter: `{"type":"eq","key":"kind","value":"hot"}`,
	})
	if err != nil {
		return err
	}
	best := found.Results[0]
	fmt.Printf("%s %.2f %s\n", best.Filename, best.Score, best.Content[0].Text)
	return nil
}

// Several files are added in one batch, with attributes of their own.
func ExampleClient_WaitFileBatch() {
	c, end := client(&agenttest.Platform{Polls: 1})
	defer end()
	ctx := context.Background()
	store, err := c.CreateStore(ctx, &platform.StoreRequest{Name: "letters"})
	if err != nil {
		log.Fatal(err)
	}
	var batch platform.FileBatchRequest
	for name, content := range map[string]string{"a.txt": "Dear A", "b.txt": "\xff\xfe"} {
		file, err := c.Upload(ctx, &platform.Upload{Source: platform.Source{Name: name, Content: strings.NewReader(content)}})
		if err != nil {
			log.Fatal(err)
		}
		batch.Files = append(batch.Files, platform.AttachRequest{FileID: file.ID})
	}
	begun, err := c.CreateFileBatch(ctx, store.ID, &batch)
	if err != nil {
		log.Fatal(err)
	}
	ended, err := c.WaitFileBatch(ctx, store.ID, begun.ID)
	fmt.Println(ended.FileCounts.Completed, "completed;", err)
	for f, err := range c.FileBatchFiles(ctx, store.ID, begun.ID, &platform.ListOptions{Status: platform.StatusFailed}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(f.LastError.Message)
	}
	// Output:
	// 1 completed; process file batch vsfb-4: 1 of 2 files could not be processed; list the files of the batch with the status failed
	// The file could not be parsed.
}

// A moderation says which categories apply to each text.
func ExampleClient_Moderate() {
	c, end := client(&agenttest.Platform{Harmful: func(text string) bool { return strings.Contains(text, "bomb") }})
	defer end()
	v, err := c.Moderate(context.Background(), &platform.ModerationRequest{Texts: []string{"how to build a bomb", "how to build a boat"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range v.Results {
		fmt.Println(r.Flagged, r.Flags(), r.Score("violence"))
	}
	// Output:
	// true [violence] 0.99
	// false [] 0.01
}

// A stream shows an image while it is made.
func ExampleClient_StreamImages() {
	c, end := client(&agenttest.Platform{})
	defer end()
	for event, err := range c.StreamImages(context.Background(), &platform.ImageRequest{Model: "gpt-image-1", Prompt: "a tea pot", PartialImages: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		image, err := event.Image().Reader()
		if err != nil {
			log.Fatal(err)
		}
		size, err := io.Copy(io.Discard, image)
		fmt.Println(event.Type, size, err)
	}
	// Output:
	// image_generation.partial_image 70 <nil>
	// image_generation.partial_image 70 <nil>
	// image_generation.completed 70 <nil>
}

// A server that has no such part of the API says so.
func ExampleClient_unsupported() {
	srv := httptest.NewServer(nil)
	defer srv.Close()
	c := &platform.Client{BaseURL: srv.URL, HTTP: srv.Client()}
	_, err := c.Moderate(context.Background(), &platform.ModerationRequest{Texts: []string{"hello"}})
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	// Output: true
}
