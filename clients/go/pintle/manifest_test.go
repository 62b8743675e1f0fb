package pintle

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	always := func(map[string]any) bool { return true }
	for _, test := range []struct {
		content  string
		isWanted func(map[string]any) bool
		// what is decoded, or what the error has
		wanted, failure string
	}{
		{content: "", isWanted: always},
		{content: "# nothing\n---\n---\n", isWanted: always},
		{
			content:  "apiVersion: v1\nkind: A\ndata: {1: yes, b: 0x10, c: 9223372036854775807, d: 2020-01-01}\n---\n{\"apiVersion\": \"v1\", \"kind\": \"B\"}\n",
			isWanted: always,
			wanted:   `{"apiVersion":"v1","data":{"1":true,"b":16,"c":9223372036854775807,"d":"2020-01-01"},"kind":"A"} {"apiVersion":"v1","kind":"B"}`,
		},
		{
			content:  "apiVersion: v1\nkind: AList\nitems: [{metadata: {name: a}}]\n---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: B}]\n",
			isWanted: always,
			wanted:   `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}} {"apiVersion":"v1","kind":"B"}`,
		},
		{content: "a: b\n", isWanted: isManifest},
		{content: "[1, 2]\n", isWanted: isManifest},
		{content: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", isWanted: isManifest},
		{content: "a: b\n", isWanted: always, failure: "an object without apiVersion and kind"},
		{content: "[1, 2]\n", isWanted: always, failure: "an object without apiVersion and kind"},
		{content: "apiVersion: v1\nkind: List\nitems: [1]\n", isWanted: always, failure: "cannot unmarshal number"},
		{content: "? [1]\n: 2\n", isWanted: always, failure: "invalid map key"},
		{content: "~: 2\n", isWanted: always, failure: "a key of type <nil>"},
		{content: "a: [", isWanted: always, failure: "yaml: "},
	} {
		decoded, err := decode([]byte(test.content), test.isWanted)
		var bodies []string
		for _, found := range decoded {
			bodies = append(bodies, string(found.body))
		}
		if found := strings.Join(bodies, " "); found != test.wanted {
			t.Errorf("%q: %s, not %s", test.content, found, test.wanted)
		}
		if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
			t.Errorf("%q: %v, not %s", test.content, err, test.failure)
		}
	}
}

func TestFieldsThatWereNeverSetAreNotApplied(t *testing.T) {
	type object map[string]any
	for _, test := range []struct{ object, wanted object }{
		{object{"metadata": object{"name": "a", "creationTimestamp": nil}, "status": object{}}, object{"metadata": object{"name": "a"}}},
		{object{"metadata": object{"name": "a"}, "status": object{"a": 1}}, object{"metadata": object{"name": "a"}, "status": object{"a": 1}}},
		{object{}, object{}},
	} {
		test.object["apiVersion"], test.object["kind"] = "v1", "A"
		test.wanted["apiVersion"], test.wanted["kind"] = "v1", "A"
		fields, err := fieldsOf(test.object)
		if err != nil {
			t.Fatal(err)
		}
		found, err := newManifest(fields)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := newManifest(test.wanted)
		if err != nil || string(found.body) != string(wanted.body) {
			t.Errorf("%s, not %s: %v", found.body, wanted.body, err)
		}
	}
}
