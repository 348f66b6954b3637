// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// hookTime is how long the receiver of an event may take.
	hookTime = 30 * time.Second
	// minSecret is the least length of a key in bytes.
	minSecret = 16
)

// Webhook is the receiver of events about responses, which are signed as the API signs its
// own: by the headers webhook-id, webhook-timestamp and webhook-signature. An event may come
// more than once, with the same webhook-id.
type Webhook struct {
	// URL receives each event by POST: https, or http at a loopback address.
	URL string
	// Secret signs the events. If it begins with whsec_, the rest is the key in base64.
	Secret string
	// HTTP sends the events. It follows no redirects. Nil means a client without other settings.
	HTTP *http.Client
}

// Check reports what is wrong with the fields.
func (h *Webhook) Check() error {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil:
		return errors.New("the URL of the webhook cannot be parsed") // it may have a secret
	case u.User != nil:
		return errors.New("the URL of the webhook has a password")
	case u.Hostname() == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return errors.New("the URL of the webhook must begin with https://, or name a loopback address")
	}
	_, err = h.key()
	return err
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// key returns the key that signs.
func (h *Webhook) key() ([]byte, error) {
	key := []byte(h.Secret)
	if rest, ok := strings.CutPrefix(h.Secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(rest); err != nil {
			return nil, errors.New("the secret of the webhook is not base64 after whsec_")
		}
	}
	if len(key) < minSecret {
		return nil, fmt.Errorf("the secret of the webhook is shorter than %d bytes", minSecret)
	}
	return key, nil
}

// Send sends an event once. Unless the receiver accepts it, it returns an error.
func (h *Webhook) Send(ctx context.Context, id string, body []byte) error {
	if err := h.Check(); err != nil {
		return err
	}
	key, err := h.key()
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%s.%s", id, stamp, body)
	ctx, stop := context.WithTimeout(ctx, hookTime)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "antiphon")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	var client http.Client
	if h.HTTP != nil {
		client = *h.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(r)
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err // the URL may have a secret
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver at %s answered with status %d", r.URL.Host, resp.StatusCode)
	}
	return nil
}
