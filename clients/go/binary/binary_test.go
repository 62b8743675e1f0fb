package binary

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

func forget(t *testing.T, imported bool, packed Packed) {
	was, had := isEmbeddedImported, embedded
	isEmbeddedImported, embedded = imported, packed
	t.Cleanup(func() { isEmbeddedImported, embedded = was, had })
}

func TestMissingProgramsAreOneLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, test := range []struct {
		named    string
		imported bool
		wanted   string
	}{
		{"/no/such/pintle", false, `^PINTLE_BINARY names /no/such/pintle, which is no program: correct or unset it$`},
		{"", false, `^there is no pintle for \w+/\w+: import _ "\S+/embedded", put pintle \S+ into PATH, or name it in PINTLE_BINARY$`},
		{"", true, `^\S+/embedded has no pintle for \w+/\w+: put pintle \S+ into PATH, or name it in PINTLE_BINARY$`},
	} {
		t.Setenv("PINTLE_BINARY", test.named)
		forget(t, test.imported, Packed{})
		if path, err := Find(); err == nil || !regexp.MustCompile(test.wanted).MatchString(err.Error()) {
			t.Errorf("%s %v, not %s", path, err, test.wanted)
		}
	}
}

func TestOtherVersionsAreOneLine(t *testing.T) {
	if err := CheckVersion("/bin/pintle", Version); err != nil {
		t.Error(err)
	}
	err := CheckVersion("/bin/pintle", "0.0.1")
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasSuffix(err.Error(), "@v0.0.1, or use another program") {
		t.Error(err)
	}
}

func TestEmbeddedProgramsAreUnpackedOnce(t *testing.T) {
	packed := Packed{Digest: "0123", Part: 4}
	for _, part := range []string{"#!/b", "in/s", "h\n"} {
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		writer.Write([]byte(part))
		writer.Close()
		packed.Compressed = append(packed.Compressed, compressed.Bytes()...)
		packed.Ends = append(packed.Ends, len(packed.Compressed))
	}
	forget(t, true, packed)
	t.Setenv("PINTLE_BINARY", "")
	for _, name := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if path, err := Find(); err != nil || filepath.Base(path) != "pintle" {
				t.Error(path, err)
			}
		})
	}
	all.Wait()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "#!/bin/sh\n" {
		t.Fatal(string(content), err)
	}
	if status, err := os.Stat(path); err != nil || status.Mode().Perm() != 0o755 {
		t.Fatal(status, err)
	}
}
