{{- define "pintle.name" -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "pintle.selector" -}}
app.kubernetes.io/name: pintle
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pintle.labels" -}}
{{ include "pintle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
