package envtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// read returns the objects in files, and in the files that lie in directories.
func read(paths []string, isErrorIfMissing bool) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		found, err := files(path)
		if errors.Is(err, fs.ErrNotExist) && !isErrorIfMissing {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			decoded, err := decode(content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, decoded...)
		}
	}
	return objects, nil
}

// files returns a path that is a file, or the manifests that lie in one that is a directory.
func files(path string) ([]string, error) {
	status, err := os.Stat(path)
	if err != nil || !status.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".json", ".yaml", ".yml":
			if !entry.IsDir() {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
	}
	return files, nil
}

// decode returns the objects of documents, and those in lists. Other documents, and those for kustomize, are not among them.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if !isObject(text) {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		list, err := object.ToList()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
}

func isObject(text []byte) bool {
	var document metav1.TypeMeta
	err := json.Unmarshal(text, &document)
	return err == nil && document.Kind != "" && document.APIVersion != "" && !strings.HasPrefix(document.APIVersion, "kustomize.config.k8s.io/")
}
