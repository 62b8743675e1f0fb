package pintle

import (
	"context"
	"net/http"
	"time"
)

const clockPath = testingPath + "clocks/clock"

// Clock is the time of a workspace: of its objects, events, tokens and certificates.
type Clock struct {
	workspace *Workspace
}

// Clock returns the clock of the workspace, which tests stop and advance.
func (w *Workspace) Clock() Clock { return Clock{w} }

// change changes fields of the specification.
func (c Clock) change(ctx context.Context, spec map[string]any) error {
	err := c.workspace.Request(ctx, http.MethodPatch, clockPath, map[string]any{"spec": spec}, nil)
	if isNotFound(err) {
		return c.workspace.createTesting(ctx, "clocks", "Clock", "clock", spec, nil)
	}
	return err
}

// Stop stops the clock at what it shows.
func (c Clock) Stop(ctx context.Context) error { return c.change(ctx, map[string]any{"stopped": true}) }

// StopAt stops the clock at a time, which is not before what it shows. The seed makes uids and generated names repeatable; the clock must
// not have been changed before.
func (c Clock) StopAt(ctx context.Context, at time.Time, seed int64) error {
	return c.change(ctx, map[string]any{"stopped": true, "time": at.UTC().Format(time.RFC3339Nano), "seed": seed})
}

// Advance advances the clock. What becomes due is done when Settle returns.
func (c Clock) Advance(ctx context.Context, by time.Duration) error {
	var found struct {
		Spec struct {
			// how much it has been advanced in all
			Advance string `json:"advance"`
		} `json:"spec"`
	}
	if err := c.workspace.Request(ctx, http.MethodGet, clockPath, nil, &found); err != nil && !isNotFound(err) {
		return err
	}
	if found.Spec.Advance != "" {
		before, err := time.ParseDuration(found.Spec.Advance)
		if err != nil {
			return err
		}
		by += before
	}
	return c.change(ctx, map[string]any{"advance": by.String()})
}

// Set sets the clock to a time, which is not before what it shows.
func (c Clock) Set(ctx context.Context, to time.Time) error {
	return c.change(ctx, map[string]any{"time": to.UTC().Format(time.RFC3339Nano)})
}

// Resume lets a stopped clock go on.
func (c Clock) Resume(ctx context.Context) error {
	return c.change(ctx, map[string]any{"stopped": false})
}

// Delete ends the effect: the time is that of the machine again.
func (c Clock) Delete(ctx context.Context) error {
	return c.workspace.Request(ctx, http.MethodDelete, clockPath, nil, nil)
}
