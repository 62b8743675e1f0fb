package pintle

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	applyPatch = "application/apply-patch+yaml"
	mergePatch = "application/merge-patch+json"
	plain      = "application/json"
)

// Credentials authenticate a user that may do everything. They are texts in PEM.
type Credentials struct {
	CertificateAuthority string `json:"certificateAuthority"`
	Certificate          string `json:"certificate"`
	Key                  string `json:"key"`
}

// StatusError is the API's answer to a request that failed.
type StatusError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (e *StatusError) Error() string { return e.Message }

// isNotFound is also true for paths that the API does not have, whose status has no reason.
func isNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// newClient makes a client with these credentials. It uses no proxy.
func (c *Credentials) newClient() (*http.Client, error) {
	certificate, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM([]byte(c.CertificateAuthority))
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}, nil
}

// request sends a body as JSON unless it is nil, and decodes the response into what a pointer points to unless that is nil.
func (s *Server) request(ctx context.Context, method, url, contentType string, body, response any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", plain)
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		status := &StatusError{}
		if err := json.Unmarshal(text, status); err != nil || status.Message == "" {
			return &StatusError{Code: answer.StatusCode, Message: fmt.Sprintf("%s %s: %s", method, request.URL.Path, answer.Status)}
		}
		return status
	}
	if response == nil {
		return nil
	}
	return json.Unmarshal(text, response)
}
