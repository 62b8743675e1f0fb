// Package cases runs the cases of a client program and exchanges lines with tests/blackbox/test_clients.py, which started it: a line
// "ok NAME" or "FAIL NAME: why" for each case, and "restart" or "kill" where the server shall end and start again.
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

// Limit is how long one case may take.
const Limit = 60 * time.Second

// Case is one test: its name and what it does. It fails by a panic, which Must, Equal and That make.
type Case struct {
	Name string
	Run  func(ctx context.Context)
}

// Run runs the cases in their order, and answers the status to exit with.
func Run(all []Case) int {
	failed := 0
	for _, each := range all {
		began := time.Now()
		why := each.run()
		took := time.Since(began).Round(time.Millisecond)
		if why != "" {
			failed++
			fmt.Printf("FAIL %s: %s (%s)\n", each.Name, strings.ReplaceAll(why, "\n", " "), took)
		} else {
			fmt.Printf("ok %s (%s)\n", each.Name, took)
		}
	}
	return min(failed, 1)
}

func (c Case) run() (why string) {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	defer func() {
		if found := recover(); found != nil {
			why = fmt.Sprint(found)
		}
	}()
	c.Run(ctx)
	return ""
}

var (
	answers = bufio.NewReader(os.Stdin)
	asking  sync.Mutex
)

// Restart has the server end as it is asked to, and start again with its data and its port.
func Restart() { ask("restart") }

// Kill has the server end without any warning, and start again with its data and its port.
func Kill() { ask("kill") }

func ask(what string) {
	asking.Lock()
	defer asking.Unlock()
	fmt.Println(what)
	line, err := answers.ReadString('\n')
	Must(err)
	Equal("what the harness answers", strings.TrimSpace(line), "started")
}

// Must fails the case when there is an error.
func Must(err error) {
	if err != nil {
		panic(fmt.Sprintf("%T: %v", err, err))
	}
}

// Get answers the value of a call that must succeed.
func Get[T any](value T, err error) T {
	Must(err)
	return value
}

// Equal fails the case when got is not want.
func Equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("%s: got %#v, want %#v", what, got, want))
	}
}

// That fails the case when what it says is not so.
func That(so bool, format string, values ...any) {
	if !so {
		panic(fmt.Sprintf(format, values...))
	}
}

// Eventually waits until check finds no reason to wait any longer, which it gives as text.
func Eventually(ctx context.Context, check func() string) {
	for why := check(); why != ""; why = check() {
		select {
		case <-ctx.Done():
			panic("it did not come about: " + why)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Get2 is Get for a call with two values.
func Get2[A, B any](a A, b B, err error) (A, B) {
	Must(err)
	return a, b
}
