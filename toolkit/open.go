// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"fmt"
	"io/fs"
	"os"
)

// openFile opens a regular file for reading. Directories and special files are
// refused with the name of the tool to use instead; opening never waits, not
// even for a named pipe.
func (f *Files) openFile(doing string, p place) (*os.File, fs.FileInfo, error) {
	file, err := p.root.dir.OpenFile(p.osPath(), os.O_RDONLY|openNonblock, 0)
	if err != nil {
		if info, e := p.root.dir.Stat(p.osPath()); e == nil && info.IsDir() {
			return nil, nil, isDirectory(p)
		}
		return nil, nil, f.problem(doing, p, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = f.problem(doing, p, err)
	case info.IsDir():
		err = isDirectory(p)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file (%v)", quoted(p.shown), info.Mode().Type())
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func isDirectory(p place) error {
	return fmt.Errorf("%s is a directory; use read_directory to list it", quoted(p.shown))
}
