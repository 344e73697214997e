{{- define "pillarbox.name" -}}
{{- printf "%s-pillarbox" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "pillarbox.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "pillarbox.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "pillarbox.selector" . }}
{{- end -}}

{{- define "pillarbox.selector" -}}
app.kubernetes.io/name: pillarbox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pillarbox.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "pillarbox.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "pillarbox.env" -}}
- name: PILLARBOX_STORE_FILE
  value: /etc/pillarbox/secret/store
{{- range .Values.transports }}
{{- if eq . "default" }}
- name: PILLARBOX_TRANSPORT_FILE
  value: /etc/pillarbox/secret/transport
{{- else }}
- name: PILLARBOX_TRANSPORTS__{{ upper . }}__URL_FILE
  value: /etc/pillarbox/secret/transport-{{ . }}
{{- end }}
{{- end }}
{{- if .Values.config }}
- name: PILLARBOX_CONFIG
  value: /etc/pillarbox/config/pillarbox.toml
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "pillarbox.mounts" -}}
- name: secret
  mountPath: /etc/pillarbox/secret
  readOnly: true
{{- if .Values.config }}
- name: config
  mountPath: /etc/pillarbox/config
  readOnly: true
{{- end }}
{{- if .Values.tlsSecretName }}
- name: tls
  mountPath: /etc/pillarbox/tls
  readOnly: true
{{- end }}
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "pillarbox.volumes" -}}
- name: secret
  secret:
    secretName: {{ .Values.secretName }}
    defaultMode: 0440
{{- if .Values.config }}
- name: config
  configMap:
    name: {{ .configMap | default (include "pillarbox.name" .) }}
{{- end }}
{{- if .Values.tlsSecretName }}
- name: tls
  secret:
    secretName: {{ .Values.tlsSecretName }}
    defaultMode: 0440
{{- end }}
- name: tmp
  emptyDir: {}
{{- end -}}

{{- define "pillarbox.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "pillarbox.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}
