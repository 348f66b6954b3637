// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/patch"
)

// A patch changes many files, or none.
func ExampleApply() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.WriteFile(filepath.Join(dir, "greet.py"), []byte("def greet():\n    print('hi')\n"), 0o644)

	files, err := toolkit.Open(toolkit.Root{Path: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	done, err := patch.Apply(context.Background(), files, `*** Begin Patch
*** Update File: greet.py
@@ def greet():
-    print('hi')
+    print('hello')
*** Add File: README
+Says hello.
*** End Patch`)
	fmt.Println(done, err)

	_, err = patch.Apply(context.Background(), files, `*** Begin Patch
*** Update File: greet.py
@@ def greet():
-    print("hello")
+    print('good day')
*** Delete File: README
*** End Patch`)
	fmt.Println(err)
	// Output:
	// The patch was applied:
	// M greet.py
	// A README <nil>
	// nothing was changed, in no file: greet.py, hunk 1 (line 3 of the patch): these lines were not found in the file:
	//     |     print("hello")
	// The place most like them is line 2 of the file:
	//      2 |     print('hello')
	// What differs: line 2 is "    print('hello')", the patch has "    print(\"hello\")"
}
