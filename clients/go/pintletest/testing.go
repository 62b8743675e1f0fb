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

// Report returns what each client has done, and what of it is suspicious: the status of a Report.
func (w *Workspace) Report() (map[string]any, error) { return w.shared.Report() }

// Clock returns the clock of the workspace, which tests stop and advance.
func (w *Workspace) Clock() Clock { return Clock{w.shared} }

// Clock is the time of a workspace: of its objects, events, tokens and certificates.
type Clock struct {
	shared *shared.Workspace
}

// Stop stops the clock at what it shows.
func (c Clock) Stop() error { return c.shared.ChangeClock(map[string]any{"stopped": true}) }

// StopAt stops the clock at a time, which is not before what it shows. The seed makes uids and generated names repeatable; the clock must
// not have been changed before.
func (c Clock) StopAt(at time.Time, seed int64) error {
	return c.shared.ChangeClock(map[string]any{"stopped": true, "time": at.UTC().Format(time.RFC3339Nano), "seed": seed})
}

// Advance advances the clock. What becomes due is done when Settle returns.
func (c Clock) Advance(by time.Duration) error { return c.shared.AdvanceClock(by) }

// Set sets the clock to a time, which is not before what it shows.
func (c Clock) Set(to time.Time) error {
	return c.shared.ChangeClock(map[string]any{"time": to.UTC().Format(time.RFC3339Nano)})
}

// Resume lets a stopped clock go on.
func (c Clock) Resume() error { return c.shared.ChangeClock(map[string]any{"stopped": false}) }

// Delete ends the effect: the time is that of the machine again.
func (c Clock) Delete() error { return c.shared.DeleteClock() }
