// Package pintle starts the server that the processes of a test run share, and that ends with the last of them, and creates workspaces in
// it, each of which is a Kubernetes API of its own.
//
//	server, err := pintle.Start(ctx)
//	workspace, err := server.Workspace(ctx, nil)
//	err = workspace.Apply(ctx, "config/crd")
//	kubeconfig, err := workspace.Kubeconfig()
//
// Tests need less code with the package pintletest. Clients of client-go are in the module clients/go/clientgo. A context bounds how long a
// call waits; what it has begun, such as the start of a server, may go on.
//
// A Unix socket stands for the server. A connection to it makes this process a user; the kernel closes it however the process ends. The
// server sends a line of JSON when it is ready. Without a server there, this process starts one, which ends at once if another process
// was faster; see `pintle serve --help`.
package pintle

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/clients/go/binary"
)

const (
	startTime = 60 * time.Second
	// A program that ends without a word this often, for this long, is no server; another process that starts one ends ours once or twice.
	silentEnds = 20
	silentTime = 3 * time.Second
	// macOS has the shortest paths of sockets
	maxSocketPath = 103
	// of what a server logs, this much is shown
	maxLog = 1 << 20
)

// Server is a running server, of which this process is a user until it ends.
type Server struct {
	URL     string `json:"url"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Log is the path of the log.
	Log string `json:"log"`
	// Credentials are those of the administrator.
	Credentials Credentials `json:"credentials"`

	// Data is a directory that exists as long as the server.
	Data string `json:"-"`

	program    string
	socket     string
	flags      []string
	connection *net.UnixConn
	client     *http.Client

	templates sync.Map
}

var (
	started  = map[string]*Server{}
	starting = make(chan struct{}, 1)
)

// Start returns the server of this test run with these flags of `pintle serve`, which is started unless it runs.
func Start(ctx context.Context, flags ...string) (*Server, error) {
	select {
	case starting <- struct{}{}:
		defer func() { <-starting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	program, err := binary.Find()
	if err != nil {
		return nil, err
	}
	name, err := identity(program, flags)
	if err != nil {
		return nil, err
	}
	if server := started[name]; server != nil {
		return server, nil
	}
	server := &Server{program: program}
	server.socket = filepath.Join(directory(), name+".sock")
	server.Data = filepath.Join(directory(), name+".data")
	server.flags = append([]string{
		"serve", "--storage=memory", "--workspaces", "--testing", "--secure-port=0", "--bind-address=127.0.0.1", "-o=json",
		"--exit-with-users=" + server.socket, "--data-dir=" + server.Data,
	}, flags...)
	if err := server.join(ctx); err != nil {
		return nil, err
	}
	started[name] = server
	return server, nil
}

// identity is a name for the server of a test run: the tests of all packages are children of the same `go test`.
func identity(program string, flags []string) (string, error) {
	run := os.Getenv("PINTLE_RUN")
	if run == "" {
		run = strconv.Itoa(os.Getppid())
	}
	status, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	parts := []string{"go", run, program, strconv.FormatInt(status.ModTime().UnixNano(), 10), strconv.FormatInt(status.Size(), 10)}
	sum := sha256.Sum256([]byte(strings.Join(append(parts, flags...), "\x00")))
	return hex.EncodeToString(sum[:8]), nil
}

// directory is that of the sockets, which only this user can read: the first one that is writable, with paths that a socket can have.
func directory() string {
	const writable, name = 2, "/0123456789abcdef.sock"
	own := fmt.Sprintf("pintle-%d", os.Getuid())
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if place := filepath.Join(parent, own); parent != "" && len(place+name) <= maxSocketPath && syscall.Access(parent, writable) == nil {
			return place
		}
	}
	return filepath.Join("/tmp", own)
}

// join becomes a user of the server, and starts one if there is none.
func (s *Server) join(ctx context.Context) error {
	began := time.Now()
	for ends := 0; ; ends++ {
		isReady, err := s.connect(ctx)
		if err != nil {
			return err
		}
		if isReady {
			break
		}
		took := time.Since(began)
		if ends > silentEnds && took > silentTime {
			os.Remove(s.logFile())
			os.Remove(filepath.Dir(s.socket))
			return fmt.Errorf("%s ends without starting a server: run %s serve to see why, and correct PINTLE_BINARY if it is set", s.program, s.program)
		}
		if took > startTime {
			return fmt.Errorf("no server has started within %s: run %s serve to see why", startTime, s.program)
		}
		if err := s.spawn(ctx); err != nil {
			return err
		}
	}
	err := binary.CheckVersion(s.program, s.Version)
	if err == nil {
		s.client, err = s.Credentials.newClient()
	}
	if err != nil {
		s.connection.Close()
	}
	return err
}

// connect reads the first line. False if there is no server, or if it is about to end.
func (s *Server) connect(ctx context.Context) (bool, error) {
	dialer := net.Dialer{Timeout: startTime}
	connection, err := dialer.DialContext(ctx, "unix", s.socket)
	if err != nil {
		return false, ctx.Err()
	}
	line, err := readLine(ctx, connection)
	if err != nil {
		connection.Close()
		return false, ctx.Err()
	}
	if err := json.Unmarshal(line, s); err != nil {
		connection.Close()
		return false, fmt.Errorf("%s is the socket of a server of another version: %w", s.socket, err)
	}
	s.connection = connection.(*net.UnixConn)
	return true, nil
}

// readLine reads until a line ends, or the context does.
func readLine(ctx context.Context, connection net.Conn) ([]byte, error) {
	connection.SetReadDeadline(time.Now().Add(startTime))
	isRead := make(chan struct{})
	defer close(isRead)
	go func() {
		select {
		case <-ctx.Done():
			connection.SetReadDeadline(time.Now())
		case <-isRead:
		}
	}()
	return bufio.NewReader(connection).ReadBytes('\n')
}

func (s *Server) logFile() string { return strings.TrimSuffix(s.socket, "sock") + "log" }

// spawn starts a server, and returns when it accepts connections, or another one does.
func (s *Server) spawn(ctx context.Context) error {
	err := os.MkdirAll(filepath.Dir(s.socket), 0o700)
	if err != nil {
		return err
	}
	path := s.logFile()
	// the server removes it
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// the directory of a server that has just ended
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	command := exec.Command(s.program, s.flags...)
	command.Stderr = log
	// a session of its own: Ctrl-C is for the tests
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	err = command.Start()
	if errors.Is(err, syscall.ETXTBSY) {
		// a process that another test has just started still has the file that was unpacked
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s cannot be run: %w: correct PINTLE_BINARY, or install it again", s.program, err)
	}
	ended := make(chan error, 1)
	isReady := make(chan bool, 1)
	// nothing else waits for its end
	go func() {
		_, err := bufio.NewReader(stdout).ReadBytes('\n')
		isReady <- err == nil
		ended <- command.Wait()
	}()
	select {
	case <-ctx.Done():
		// others may have joined it; it ends if nobody has
		return ctx.Err()
	case is := <-isReady:
		if is {
			return nil
		}
	}
	if err := <-ended; err != nil {
		text, _ := io.ReadAll(io.NewSectionReader(log, before, maxLog))
		os.Remove(path)
		os.Remove(filepath.Dir(path))
		return fmt.Errorf("the server does not start: %s (%w)", reason(string(text)), err)
	}
	return nil
}

// reason is the line of a log that says why a server has ended.
func reason(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range lines {
		if why, ok := strings.CutPrefix(line, "error: "); ok {
			return why
		}
	}
	return lines[len(lines)-1]
}

// LogSize returns the length of the log until now, for LogSince.
func (s *Server) LogSize() int64 {
	status, err := os.Stat(s.Log)
	if err != nil {
		return 0
	}
	return status.Size()
}

// LogSince returns what the server has logged since then.
func (s *Server) LogSince(size int64) string {
	log, err := os.Open(s.Log)
	if err != nil {
		return ""
	}
	defer log.Close()
	text, _ := io.ReadAll(io.NewSectionReader(log, size, maxLog))
	return strings.TrimSpace(string(text))
}

// Stop ends the use of all servers by this process, which otherwise is that of its end.
func Stop() {
	starting <- struct{}{}
	defer func() { <-starting }()
	for name, server := range started {
		server.client.CloseIdleConnections()
		server.connection.Close()
		delete(started, name)
	}
}

// KeepFor keeps the server for a time after the end of this process: another process inherits the connection.
func (s *Server) KeepFor(duration time.Duration) error {
	file, err := s.connection.File()
	if err != nil {
		return err
	}
	defer file.Close()
	keeper := exec.Command("sleep", strconv.Itoa(int(duration.Seconds())))
	keeper.ExtraFiles = []*os.File{file}
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return keeper.Start()
}

// Kubeconfig returns the path of the kubeconfig of the server's administrator.
func (s *Server) Kubeconfig() string { return filepath.Join(s.Data, "admin.kubeconfig") }
