package tests

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pintle/pintle/clients/go/clientgo"
	"github.com/pintle/pintle/clients/go/pintletest"
)

func TestFaultsAndSettle(t *testing.T) {
	workspace := pintletest.New(t, options)
	fault, err := workspace.Fault(ctx, map[string]any{
		"match":  map[string]any{"verbs": []any{"create"}, "resources": []any{"boats"}},
		"effect": map[string]any{"error": map[string]any{"code": int64(409)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := create(clientgo.Config(workspace), "mary"); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// the status follows
		if hits, err := fault.Hits(ctx); err != nil || time.Now().After(until) {
			t.Fatal(hits, err)
		} else if hits == 1 {
			break
		}
	}
	if err := fault.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := create(clientgo.Config(workspace), "mary"); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Settle(ctx, 100*time.Millisecond, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Settle(ctx, 300*time.Millisecond, 100*time.Millisecond); err == nil || !strings.HasPrefix(err.Error(), "not settled: ") {
		t.Fatal(err)
	}
}

func TestClockAndReport(t *testing.T) {
	workspace := pintletest.New(t, options)
	clock, begin := workspace.Clock(), time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := errors.Join(clock.StopAt(ctx, begin, 7), clock.Advance(ctx, time.Hour), clock.Advance(ctx, 1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	created, err := create(clientgo.Config(workspace), "mary")
	if err != nil || !created.GetCreationTimestamp().Time.Equal(begin.Add(time.Hour+time.Second)) {
		t.Fatal(created, err)
	}
	if err := clock.Set(ctx, begin.Add(-time.Hour)); err == nil || !strings.Contains(err.Error(), "never goes back") {
		t.Fatal(err)
	}
	if err := errors.Join(clock.Stop(ctx), clock.Resume(ctx), clock.Delete(ctx)); err != nil {
		t.Fatal(err)
	}
	report, err := workspace.Report(ctx)
	if err != nil || len(report["agents"].([]any)) == 0 {
		t.Fatal(report, err)
	}
}
