// Answers questions about patterns, paths, numbers and YAML, a line of JSON each, as Go and the libraries of Kubernetes do.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"sort"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

type question struct {
	Pattern *string
	Path    *string
	Number  *string
	Amount  *string
	// in base64
	Document *[]byte
	// to be encoded as YAML
	Encode json.RawMessage
	Texts    []string
	Objects  []json.RawMessage
	Schemas  []json.RawMessage
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		answer, err := json.Marshal(answerTo(q))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\n", answer)
	}
}

func answerTo(q question) any {
	switch {
	case q.Pattern != nil:
		return pattern(*q.Pattern, q.Texts)
	case q.Path != nil:
		return path(*q.Path, q.Objects)
	case q.Document != nil:
		return document(*q.Document)
	case q.Encode != nil:
		return encoded(q.Encode)
	case q.Amount != nil:
		return amount(*q.Amount, q.Texts)
	default:
		return number(*q.Number, q.Schemas)
	}
}

// The error, or for every text the places of all groups of all matches.
func pattern(text string, texts []string) any {
	compiled, err := regexp.Compile(text)
	if err != nil {
		return err.Error()
	}
	found := []any{}
	for _, text := range texts {
		found = append(found, compiled.FindAllStringSubmatchIndex(text, -1))
	}
	return found
}

// The error, or for every object what is found in it, in the order of its JSON: members of maps come in any.
func path(text string, objects []json.RawMessage) any {
	compiled := jsonpath.New("test").AllowMissingKeys(true)
	if err := compiled.Parse("{" + text + "}"); err != nil {
		return err.Error()
	}
	found := []any{}
	for _, raw := range objects {
		var object map[string]any
		if err := utiljson.Unmarshal(raw, &object); err != nil {
			panic(err)
		}
		results, err := compiled.FindResults(object)
		if err != nil {
			found = append(found, "failed")
			continue
		}
		texts := []string{}
		if len(results) > 0 {
			for _, value := range results[0] {
				text, _ := json.Marshal(value.Interface())
				texts = append(texts, string(text))
			}
		}
		sort.Strings(texts)
		found = append(found, texts)
	}
	return found
}

// How a number is read, shown and written, and what each schema says of it.
func number(text string, schemas []json.RawMessage) any {
	var object map[string]any
	if err := utiljson.Unmarshal([]byte(`{"n":`+text+`}`), &object); err != nil {
		return "refused"
	}
	value := object["n"]
	written, _ := json.Marshal(value)
	said := []any{}
	for _, raw := range schemas {
		property := spec.Schema{}
		if err := json.Unmarshal(raw, &property); err != nil {
			panic(err)
		}
		schema := &spec.Schema{SchemaProps: spec.SchemaProps{
			Type: []string{"object"}, Properties: map[string]spec.Schema{"n": property}}}
		texts := []string{}
		for _, err := range validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(object).Errors {
			texts = append(texts, err.Error())
		}
		sort.Strings(texts)
		said = append(said, texts)
	}
	return map[string]any{"type": fmt.Sprintf("%T", value), "shown": fmt.Sprint(value), "written": string(written), "said": said}
}

// How a quantity is read and written, and how it goes with others.
func amount(text string, others []string) any {
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return err.Error()
	}
	integer, whole := parsed.AsInt64()
	if !whole {
		integer = 0
	}
	said := []any{parsed.String(), integer, whole, told(parsed), parsed.Sign()}
	// beyond that and below zero thousandths overflow
	if float := parsed.AsApproximateFloat64(); float > 0 && float < 1e9 {
		said = append(said, parsed.MilliValue()%1000 == 0)
	}
	for _, text := range others {
		other, err := resource.ParseQuantity(text)
		if err != nil {
			continue
		}
		// comparing and adding change what they are about
		compared, sum, difference := parsed.DeepCopy(), parsed.DeepCopy(), parsed.DeepCopy()
		order := compared.Cmp(other)
		sum.Add(other)
		difference.Sub(other)
		said = append(said, order, sum.String(), told(sum), difference.String(), told(difference))
	}
	return said
}

// The bits of the double.
func told(quantity resource.Quantity) string {
	return strconv.FormatUint(math.Float64bits(quantity.AsApproximateFloat64()), 16)
}
