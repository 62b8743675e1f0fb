// Package binary finds the program pintle: the one that PINTLE_BINARY names, the one that is embedded in the test, or the one in PATH.
package binary

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

const module = "github.com/pintle/pintle/clients/go"

// Packed is a compressed program. It has parts that are decompressed beside each other: one core takes longer for all of them than a
// server takes to start.
type Packed struct {
	// Digest names what is in it, so that it need not be read before it is unpacked.
	Digest string
	// Compressed has a member of gzip for each part.
	Compressed []byte
	// Ends are the offsets in Compressed after each part.
	Ends []int
	// Part is the size of each part but the last, before it was compressed.
	Part int64
}

// What the package embedded has: nothing, unless it is imported; no program, if it has none for this platform.
var (
	isEmbeddedImported bool
	embedded           Packed
)

// Embed makes a program known. The package embedded calls it, with nothing first: its files are initialized in any order.
func Embed(packed Packed) {
	isEmbeddedImported = true
	if len(packed.Compressed) > 0 {
		embedded = packed
	}
}

// Find returns the path of the program. The error is one line.
func Find() (string, error) {
	if named := os.Getenv("PINTLE_BINARY"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("PINTLE_BINARY names %s, which is no program: correct or unset it", named)
		}
		return filepath.Abs(path)
	}
	// before PATH, since it has the version of this module
	if len(embedded.Compressed) > 0 {
		return unpacked()
	}
	if path, err := exec.LookPath("pintle"); err == nil {
		return filepath.Abs(path)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	remedy := fmt.Sprintf("put pintle %s into PATH, or name it in PINTLE_BINARY", Version)
	if isEmbeddedImported {
		return "", fmt.Errorf("%s/embedded has no pintle for %s: %s", module, platform, remedy)
	}
	return "", fmt.Errorf("there is no pintle for %s: import _ %q, %s", platform, module+"/embedded", remedy)
}

// CheckVersion compares the version of a running server with that of this module.
func CheckVersion(program, version string) error {
	if version == Version {
		return nil
	}
	remedy := fmt.Sprintf("go get %s@v%s, or use another program", module, version)
	return fmt.Errorf("%s has version %s, and %s has %s: %s", program, version, module, Version, remedy)
}

// unpacked returns the path of the embedded program, which is kept in the user's cache: once for all tests, and for each version.
func unpacked() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(os.TempDir(), fmt.Sprintf("pintle-cache-%d", os.Getuid()))
	}
	directory := filepath.Join(cache, "pintle", Version+"-"+embedded.Digest)
	path := filepath.Join(directory, "pintle")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := unpack(directory, path); err != nil {
		return "", fmt.Errorf("the embedded pintle cannot be unpacked: %w: free the disk, or name a program in PINTLE_BINARY", err)
	}
	return path, nil
}

// unpack writes the parts to their places in a file, on all cores.
func (packed Packed) unpack(file io.WriterAt) error {
	failures := make([]error, len(packed.Ends))
	var all sync.WaitGroup
	begin := 0
	for i, end := range packed.Ends {
		part := packed.Compressed[begin:end]
		begin = end
		all.Go(func() {
			reader, err := gzip.NewReader(bytes.NewReader(part))
			if err == nil {
				_, err = io.Copy(io.NewOffsetWriter(file, int64(i)*packed.Part), reader)
			}
			failures[i] = err
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

func unpack(directory, path string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(directory, "new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	err = embedded.unpack(file)
	if err = errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		return err
	}
	// the first of several processes: its file is part of the identity of the server that they share
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
