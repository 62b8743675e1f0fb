// Package binary finds the program pintle: the one that PINTLE_BINARY names, the one that is embedded in the test, or the one in PATH.
package binary

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const module = "github.com/pintle/pintle/clients/go"

// What the package embedded has: nothing, unless it is imported; no program, if it has none for this platform.
var (
	isEmbeddedImported bool
	embedded           []byte
)

// Embed makes a compressed program known. The package embedded calls it, with nil first: its files are initialized in any order.
func Embed(compressed []byte) {
	isEmbeddedImported = true
	if len(compressed) > 0 {
		embedded = compressed
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
	if len(embedded) > 0 {
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
	sum := sha256.Sum256(embedded)
	directory := filepath.Join(cache, "pintle", Version+"-"+hex.EncodeToString(sum[:8]))
	path := filepath.Join(directory, "pintle")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := unpack(directory, path); err != nil {
		return "", fmt.Errorf("the embedded pintle cannot be unpacked: %w: free the disk, or name a program in PINTLE_BINARY", err)
	}
	return path, nil
}

func unpack(directory, path string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	reader, err := gzip.NewReader(bytes.NewReader(embedded))
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(directory, "new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.Copy(file, reader)
	if err = errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		return err
	}
	// the first of several processes: its file is part of the identity of the server that they share
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
