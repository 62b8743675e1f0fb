// Package failing has tests that fail, which others run.
package failing

import (
	"os"
	"testing"

	"github.com/pintle/pintle/clients/go/pintletest"

	_ "github.com/pintle/pintle/clients/go/embedded"
)

func TestFails(t *testing.T) {
	if os.Getenv("FAILING") == "" {
		t.Skip("TestFailuresShowTheWorkspace runs it")
	}
	pintletest.Start(t)
	t.Error("as wanted")
}

func TestWrongFlags(t *testing.T) {
	if os.Getenv("FAILING") == "" {
		t.Skip("TestWhatIsWrongIsOneLine runs it")
	}
	pintletest.Start(t, pintletest.Options{Flags: []string{"--no-such-flag"}})
}
