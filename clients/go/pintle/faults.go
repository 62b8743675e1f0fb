package pintle

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const testingPath = "/apis/testing.pintle.dev/v1alpha1/"

// createTesting creates an object of the group testing.pintle.dev.
func (w *Workspace) createTesting(ctx context.Context, resource, kind, name string, spec map[string]any, response any) error {
	object := map[string]any{
		"apiVersion": "testing.pintle.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}
	return w.Request(ctx, http.MethodPost, testingPath+resource, object, response)
}

// Fault makes requests or events of a workspace fail.
type Fault struct {
	workspace *Workspace
	path      string
}

// Fault makes requests or events fail, until Delete or the end of the workspace. The specification is that of a Fault: `recipe`, or
// `match`, `when` and `effect`.
func (w *Workspace) Fault(ctx context.Context, spec map[string]any) (*Fault, error) {
	name := "fault-" + random()
	if err := w.createTesting(ctx, "faults", "Fault", name, spec, nil); err != nil {
		return nil, err
	}
	return &Fault{w, testingPath + "faults/" + name}, nil
}

// Hits returns the number of requests and events that the fault has hit.
func (f *Fault) Hits(ctx context.Context) (int64, error) {
	var found struct {
		Status struct {
			Hits int64 `json:"hits"`
		} `json:"status"`
	}
	err := f.workspace.Request(ctx, http.MethodGet, f.path, nil, &found)
	return found.Status.Hits, err
}

// Delete ends the effect.
func (f *Fault) Delete(ctx context.Context) error {
	return f.workspace.Request(ctx, http.MethodDelete, f.path, nil, nil)
}

// Settle returns when every watch has received everything, and nothing has been written for the time quiet. After the time limit the
// error says who is behind.
func (w *Workspace) Settle(ctx context.Context, quiet, limit time.Duration) error {
	var settle struct {
		Status struct {
			Settled bool   `json:"settled"`
			Message string `json:"message"`
		} `json:"status"`
	}
	spec := map[string]any{"quiet": quiet.String(), "timeout": limit.String()}
	if err := w.createTesting(ctx, "settles", "Settle", "now", spec, &settle); err != nil {
		return err
	}
	if !settle.Status.Settled {
		return fmt.Errorf("not settled: %s", settle.Status.Message)
	}
	return nil
}

// Report returns what each client has done, and what of it is suspicious: the status of a Report.
func (w *Workspace) Report(ctx context.Context) (map[string]any, error) {
	var report struct {
		Status map[string]any `json:"status"`
	}
	err := w.createTesting(ctx, "reports", "Report", "now", map[string]any{}, &report)
	return report.Status, err
}
