// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Httponly is a program with net/http alone.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	io.Copy(os.Stdout, resp.Body)
}
