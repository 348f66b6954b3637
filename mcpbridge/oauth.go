// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/antiphon-go/antiphon/endpoint"
)

// ClientCredentials returns a [Server.OAuth] for a program that has its own id and
// secret, so that no user has to log in. The MCP server names the authorization
// server. If issuer is set, the secret is sent only to that issuer. Without an
// issuer it is sent to the one that the MCP server names, so leave the issuer out
// only if the MCP server may know the secret. A nil client means the default
// client of net/http.
func ClientCredentials(id string, secret endpoint.Key, issuer string, client *http.Client) (auth.OAuthHandler, error) {
	return extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{
			ClientID: id, Issuer: issuer,
			ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret.Reveal()},
		},
		HTTPClient: client,
	})
}
