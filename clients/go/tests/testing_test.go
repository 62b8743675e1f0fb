package tests

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pintle/pintle/clients/go/pintletest"
)

func TestFaultsAndSettle(t *testing.T) {
	workspace := pintletest.New(t, options)
	fault := workspace.Fault(t, map[string]any{
		"match":  map[string]any{"verbs": []any{"create"}, "resources": []any{"boats"}},
		"effect": map[string]any{"error": map[string]any{"code": int64(409)}},
	})
	if _, err := create(workspace.Config(), "mary"); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// the status follows
		if hits, err := fault.Hits(); err != nil || time.Now().After(until) {
			t.Fatal(hits, err)
		} else if hits == 1 {
			break
		}
	}
	if err := fault.Delete(); err != nil {
		t.Fatal(err)
	}
	if _, err := create(workspace.Config(), "mary"); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Settle(100*time.Millisecond, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Settle(300*time.Millisecond, 100*time.Millisecond); err == nil || !strings.HasPrefix(err.Error(), "not settled: ") {
		t.Fatal(err)
	}
}
