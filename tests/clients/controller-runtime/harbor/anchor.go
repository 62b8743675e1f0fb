package harbor

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// OldVersion is the version in which anchors had their weight as a text.
var OldVersion = schema.GroupVersion{Group: "harbor.example.com", Version: "v1beta1"}

// Anchor is stored as it is.
type Anchor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AnchorSpec `json:"spec"`
}

// AnchorSpec says how heavy an anchor is.
type AnchorSpec struct {
	Kilograms int32 `json:"kilograms"`
}

// OldAnchor is an Anchor in v1beta1.
type OldAnchor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldAnchorSpec `json:"spec"`
}

// OldAnchorSpec says how heavy an anchor is, such as "12 kg".
type OldAnchorSpec struct {
	Weight string `json:"weight"`
}

// AnchorList is a list of anchors.
type AnchorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Anchor `json:"items"`
}

// OldAnchorList is a list of anchors in v1beta1.
type OldAnchorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OldAnchor `json:"items"`
}

// DeepCopyObject is what runtime.Object asks for.
func (a *Anchor) DeepCopyObject() runtime.Object {
	return &Anchor{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy(), Spec: a.Spec}
}

// DeepCopyObject is what runtime.Object asks for.
func (a *OldAnchor) DeepCopyObject() runtime.Object {
	return &OldAnchor{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy(), Spec: a.Spec}
}

// DeepCopyObject is what runtime.Object asks for.
func (l *AnchorList) DeepCopyObject() runtime.Object {
	made := &AnchorList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		made.Items = append(made.Items, *item.DeepCopyObject().(*Anchor))
	}
	return made
}

// DeepCopyObject is what runtime.Object asks for.
func (l *OldAnchorList) DeepCopyObject() runtime.Object {
	made := &OldAnchorList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		made.Items = append(made.Items, *item.DeepCopyObject().(*OldAnchor))
	}
	return made
}

// Hub marks the version through which all others go.
func (a *Anchor) Hub() {}

// ConvertTo makes the new of the old.
func (a *OldAnchor) ConvertTo(to conversion.Hub) error {
	made := to.(*Anchor)
	made.ObjectMeta = a.ObjectMeta
	if _, err := fmt.Sscanf(a.Spec.Weight, "%d kg", &made.Spec.Kilograms); err != nil {
		return fmt.Errorf("%q is no weight", a.Spec.Weight)
	}
	return nil
}

// ConvertFrom makes the old of the new.
func (a *OldAnchor) ConvertFrom(from conversion.Hub) error {
	made := from.(*Anchor)
	a.ObjectMeta = made.ObjectMeta
	a.Spec.Weight = fmt.Sprintf("%d kg", made.Spec.Kilograms)
	return nil
}

func addAnchors(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(GroupVersion, &Anchor{}, &AnchorList{})
	scheme.AddKnownTypeWithName(OldVersion.WithKind("Anchor"), &OldAnchor{})
	scheme.AddKnownTypeWithName(OldVersion.WithKind("AnchorList"), &OldAnchorList{})
	metav1.AddToGroupVersion(scheme, OldVersion)
}
