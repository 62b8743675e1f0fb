package pintletest

import (
	"testing"
	"time"

	"github.com/pintle/pintle/clients/go/internal/shared"
)

// Fault makes requests or events of a workspace fail, as clusters do.
type Fault struct {
	shared *shared.Fault
}

// Fault makes requests or events fail, until Delete or the end of the test. The specification is that of a Fault: `recipe`, or `match`,
// `when` and `effect`.
func (w *Workspace) Fault(t testing.TB, spec map[string]any) *Fault {
	t.Helper()
	created, err := w.shared.Fault(spec)
	check(t, err)
	return &Fault{created}
}

// Hits returns the number of requests and events that the fault has hit.
func (fault *Fault) Hits() (int64, error) { return fault.shared.Hits() }

// Delete ends the effect.
func (fault *Fault) Delete() error { return fault.shared.Delete() }

// Settle returns when every watch has received everything, and nothing has been written for the time quiet. After the time limit the
// error says who is behind.
func (w *Workspace) Settle(quiet, limit time.Duration) error {
	return w.shared.Settle(map[string]any{"quiet": quiet.String(), "timeout": limit.String()})
}
