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
	"syscall"
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

// unpacked returns the path of the embedded program, which is kept in the user's cache: once for all tests, and for each version. If
// the cache cannot be written to, it is kept with the temporary files.
func unpacked() (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		var path string
		if path, err = unpackedBelow(filepath.Join(cache, "pintle")); err == nil {
			return path, nil
		}
	}
	temporary := filepath.Join(os.TempDir(), fmt.Sprintf("pintle-cache-%d", os.Getuid()))
	path, second := unpackedBelow(temporary)
	if second == nil {
		return path, nil
	}
	remedy := "name a directory that can be written to in XDG_CACHE_HOME, or a program in PINTLE_BINARY"
	return "", fmt.Errorf("the embedded pintle cannot be unpacked: %w, and %w: %s", err, second, remedy)
}

func unpackedBelow(cache string) (string, error) {
	directory := filepath.Join(cache, Version+"-"+embedded.Digest)
	path := filepath.Join(directory, "pintle")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	// others can make a directory of this name among the temporary files, and a program in it
	for _, ours := range []string{cache, directory} {
		if status, err := os.Lstat(ours); err != nil || !status.IsDir() || !isOwn(status) {
			return "", fmt.Errorf("%s is not a directory of this user alone", ours)
		}
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, unpack(directory, path)
}

// isOwn returns whether only this user can change a file.
func isOwn(status fs.FileInfo) bool {
	owner, ok := status.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid() && status.Mode().Perm()&0o022 == 0
}

// unpack writes the parts to their places in a file, on all cores.
func (packed Packed) unpack(file io.WriterAt) error {
	failures := make([]error, len(packed.Ends))
	var all sync.WaitGroup
	begin := 0
	for i, end := range packed.Ends {
		i, part := i, packed.Compressed[begin:end]
		begin = end
		all.Add(1)
		go func() {
			defer all.Done()
			reader, err := gzip.NewReader(bytes.NewReader(part))
			if err == nil {
				_, err = io.Copy(io.NewOffsetWriter(file, int64(i)*packed.Part), reader)
			}
			failures[i] = err
		}()
	}
	all.Wait()
	return errors.Join(failures...)
}

func unpack(directory, path string) error {
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
