// Package cases runs the test cases of a client program. It exchanges lines with tests/blackbox/test_clients.py, which starts the
// program: the program prints "ok NAME" or "FAIL NAME: reason" for each case, and "restart" or "kill" to have the server restarted.
package cases

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Limit is the timeout of a case.
const Limit = 60 * time.Second

// Case is a test case. It fails if Run panics, as NoError, Must, Equal, True and Eventually do.
type Case struct {
	Name string
	Run  func(ctx context.Context)
}

// Run runs the cases in order and returns the exit status.
func Run(all []Case) int {
	failed := 0
	for _, each := range all {
		start := time.Now()
		reason := each.run()
		took := time.Since(start).Round(time.Millisecond)
		if reason != "" {
			failed++
			fmt.Printf("FAIL %s: %s (%s)\n", each.Name, strings.ReplaceAll(reason, "\n", " "), took)
		} else {
			fmt.Printf("ok %s (%s)\n", each.Name, took)
		}
	}
	return min(failed, 1)
}

// run returns the reason of the failure, or "".
func (c Case) run() (reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	defer func() {
		if failure := recover(); failure != nil {
			reason = fmt.Sprint(failure)
		}
	}()
	c.Run(ctx)
	return ""
}

var (
	stdin      = bufio.NewReader(os.Stdin)
	restarting sync.Mutex
)

// Restart stops the server by SIGTERM and starts it again with the same data and port.
func Restart() { restart("restart") }

// Kill stops the server by SIGKILL and starts it again with the same data and port.
func Kill() { restart("kill") }

func restart(command string) {
	restarting.Lock()
	defer restarting.Unlock()
	fmt.Println(command)
	line, err := stdin.ReadString('\n')
	NoError(err)
	Equal("line from the harness", strings.TrimSpace(line), "started")
}

// NoError fails the case if err is not nil.
func NoError(err error) {
	if err != nil {
		panic(fmt.Sprintf("%T: %v", err, err))
	}
}

// Must returns the value of a call, or fails the case if the call returned an error.
func Must[T any](value T, err error) T {
	NoError(err)
	return value
}

// Must2 is Must for a call with two values.
func Must2[A, B any](a A, b B, err error) (A, B) {
	NoError(err)
	return a, b
}

// Equal fails the case if got differs from want.
func Equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("%s: got %#v, want %#v", what, got, want))
	}
}

// True fails the case with the message if condition is false.
func True(condition bool, format string, values ...any) {
	if !condition {
		panic(fmt.Sprintf(format, values...))
	}
}

// Eventually calls check until it returns "". Any other text is the reason to wait, and that of the failure after the timeout.
func Eventually(ctx context.Context, check func() string) {
	for reason := check(); reason != ""; reason = check() {
		select {
		case <-ctx.Done():
			panic("timeout: " + reason)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
