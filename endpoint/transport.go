// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// FromTransport returns the error for a request without an answer. The argument err is the error of
// http.Client.Do. The result does not show the query and userinfo of the URL.
func FromTransport(method string, u *url.URL, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	e := &Error{Method: method, URL: ShowURL(u), Class: Network, Err: err}
	e.Hint, e.final = transportHint(u, err)
	return e
}

// transportHint returns advice for err, and whether another attempt is useless.
func transportHint(u *url.URL, err error) (hint string, final bool) {
	host := ""
	if u != nil {
		host = u.Host
	}
	var (
		dns      *net.DNSError
		record   tls.RecordHeaderError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "this server speaks plain HTTP: write http:// in the base URL", true
	case errors.As(err, &dns) && dns.IsNotFound:
		return "check the base URL and the network", true
	case errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid):
		return "the server's certificate is not trusted here: check the host's name, or install its authority", true
	case refused(err):
		return "is the server running at " + host + "?", false
	}
	return "check the network and that the server at " + host + " is up", false
}

// refused reports a refused connection. Windows has its own number for the error.
func refused(err error) bool {
	const wsaConnRefused = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, wsaConnRefused)
}
