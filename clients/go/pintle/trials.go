package pintle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pintle/pintle/clients/go/binary"
)

// Plan is what a change would do.
type Plan struct {
	Changes []Change `json:"changes"`
	// Summary counts the changes of each action.
	Summary map[string]int `json:"summary"`
	Refused []struct {
		Place
		By      string `json:"by"`
		Verb    string `json:"verb"`
		Message string `json:"message"`
		Count   int    `json:"count"`
	} `json:"refused"`
	// Varying is what differed between two runs of the change, with --details.
	Varying  []string `json:"varying"`
	Webhooks []string `json:"webhooks"`
	Hosts    []string `json:"hosts"`
}

// Place names an object. Its resource has the group, as in deployments.apps.
type Place struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Change is the effect on one object. The action is create, change, recreate or delete.
type Change struct {
	Place
	Action string   `json:"action"`
	By     []string `json:"by"`
	Reason string   `json:"reason"`
	Fields []struct {
		Path string `json:"path"`
		Old  any    `json:"old"`
		New  any    `json:"new"`
	} `json:"fields"`
}

// Trial is what faults break.
type Trial struct {
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"`
	// Cells have the verdict same, differs with symptoms, or not-tried with a reason.
	Cells []struct {
		Cell     string   `json:"cell"`
		Verdict  string   `json:"verdict"`
		Symptoms []string `json:"symptoms"`
		Reason   string   `json:"reason"`
	} `json:"cells"`
}

// Finding has cells that show the same, with the smallest of them and the command that repeats it.
type Finding struct {
	Cell        string   `json:"cell"`
	Disturbance string   `json:"disturbance"`
	Symptoms    []string `json:"symptoms"`
	Shown       int      `json:"shown"`
	Repeated    int      `json:"repeated"`
	Cells       []string `json:"cells"`
	Command     string   `json:"command"`
}

// MakePlan returns the plan of a change, with the arguments of `pintle plan`. It needs no server.
func MakePlan(ctx context.Context, arguments ...string) (*Plan, error) {
	plan := new(Plan)
	return plan, result(ctx, plan, "plan", arguments)
}

// RunTrial returns the result of a trial, with the arguments of `pintle trial`. It needs no server.
func RunTrial(ctx context.Context, arguments ...string) (*Trial, error) {
	trial := new(Trial)
	return trial, result(ctx, trial, "trial", arguments)
}

func result(ctx context.Context, value any, command string, arguments []string) error {
	program, err := binary.Find()
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(ctx, program, append([]string{command, "--output=json"}, arguments...)...)
	run.Stdout, run.Stderr = &stdout, &stderr
	err = run.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		// something changes, or a cell differs
		err = nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// what was done until then comes first
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return fmt.Errorf("pintle %s: %w: %s", command, err, strings.TrimPrefix(lines[len(lines)-1], "pintle: "))
	}
	return json.Unmarshal(stdout.Bytes(), value)
}
