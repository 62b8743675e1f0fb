package binary

import (
	"bytes"
	"compress/gzip"
	"fmt"
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
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			if path, err := Find(); err != nil || filepath.Base(path) != "pintle" {
				t.Error(path, err)
			}
		}()
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

func TestCachesThatCannotBeWrittenTo(t *testing.T) {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	writer.Write([]byte("#!/bin/sh\n"))
	writer.Close()
	forget(t, true, Packed{Digest: "0123", Part: 10, Compressed: compressed.Bytes(), Ends: []int{compressed.Len()}})
	temporary := t.TempDir()
	for name, value := range map[string]string{"PINTLE_BINARY": "", "XDG_CACHE_HOME": "/dev/null/cache", "HOME": "/dev/null", "TMPDIR": temporary} {
		t.Setenv(name, value)
	}
	if path, err := Find(); err != nil || !strings.HasPrefix(path, temporary) {
		t.Fatal(path, err)
	}
	// what others can write to is not run
	cache := filepath.Join(temporary, fmt.Sprintf("pintle-cache-%d", os.Getuid()))
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	path, err := Find()
	if err == nil || !strings.Contains(err.Error(), "not a directory of this user alone: name a directory") {
		t.Fatal(path, err)
	}
}
