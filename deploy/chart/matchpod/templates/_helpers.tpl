{{/* Names, labels and parts that several templates use. */}}
{{- define "matchpod.name" -}}
{{- default "matchpod" .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "matchpod.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "matchpod.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "matchpod.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "matchpod.serviceAccountName" -}}
{{- default (include "matchpod.fullname" .) .Values.serviceAccount.name -}}
{{- end }}

{{- define "matchpod.selectorLabels" -}}
app.kubernetes.io/name: {{ include "matchpod.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "matchpod.labels" -}}
{{ include "matchpod.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "matchpod-%s" .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "matchpod.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* The URL of the Service, for this cluster only. */}}
{{- define "matchpod.serviceUrl" -}}
http://{{ include "matchpod.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end }}

{{/* The URL for uploads of demos, for this cluster only. */}}
{{- define "matchpod.uploadUrl" -}}
http://{{ include "matchpod.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.uploadPort }}
{{- end }}

{{/* The URL for browsers and other clusters, if there is one. */}}
{{- define "matchpod.outsideUrl" -}}
{{- if .Values.publicUrl -}}
{{- .Values.publicUrl -}}
{{- else if and .Values.ingress.enabled .Values.ingress.host -}}
{{- ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}://{{ .Values.ingress.host -}}
{{- end -}}
{{- end }}

{{/* The values of gameServer for a region: its own before those of all. */}}
{{- define "matchpod.gameServer" -}}
{{- mergeOverwrite (deepCopy .root.Values.gameServer) (deepCopy (default dict .region.gameServer)) | toJson -}}
{{- end }}

{{- define "matchpod.fleetName" -}}
{{- default (printf "%s-%s" (include "matchpod.fullname" .root) .region.code) .region.fleet | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* The regions on Agones in this cluster, as JSON: {"regions": [...], "namespaces": [...]}. */}}
{{- define "matchpod.local" -}}
{{- $regions := list -}}
{{- $namespaces := list -}}
{{- range .Values.regions -}}
{{- if and (eq .kind "agones") (not .kubeconfigSecret) -}}
{{- $regions = append $regions . -}}
{{- $namespaces = append $namespaces (default $.Release.Namespace .namespace) -}}
{{- end -}}
{{- end -}}
{{- dict "regions" $regions "namespaces" (uniq $namespaces) | toJson -}}
{{- end }}

{{/* A key and its value as in matchpod.toml. JSON is TOML, except for tables. */}}
{{- define "matchpod.toml" -}}
{{ .key }} = {{ if kindIs "map" .value }}{ {{- range $i, $key := keys .value | sortAlpha }}{{ if $i }},{{ end }} {{ $key | toJson }} = {{ get $.value $key | toJson }}{{ end }} }{{ else }}{{ toJson .value }}{{ end }}
{{- end }}

{{/* The settings file. Paths are those of matchpod.volumes. */}}
{{- define "matchpod.settingsFile" -}}
# Written by the chart from the value regions.
{{- range $region := .Values.regions }}

[[regions]]
{{- range $key := list "code" "name" "location" "speed" "allows_simulator" "record_demos" "tv_delay" "upload_url" }}
{{- if hasKey $region $key }}
{{ include "matchpod.toml" (dict "key" $key "value" (get $region $key)) }}
{{- end }}
{{- end }}
{{- /* Game servers in this cluster use the Service: MATCHPOD_LOG_URL. */}}
{{- if or $region.log_url (eq $region.kind "static") $region.kubeconfigSecret }}
log_url = {{ default (include "matchpod.outsideUrl" $) $region.log_url | toJson }}
{{- end }}

[regions.fleet]
kind = {{ toJson $region.kind }}
{{- $fleet := dict }}
{{- if eq $region.kind "agones" }}
{{- $folder := printf "/etc/matchpod/regions/%s" $region.code }}
{{- $_ := set $fleet "fleet" (include "matchpod.fleetName" (dict "root" $ "region" $region)) }}
{{- $_ := set $fleet "namespace" (default $.Release.Namespace $region.namespace) }}
{{- $_ := set $fleet "secret_file" (printf "%s/secret" $folder) }}
{{- $_ := set $fleet "previous_secret_file" (printf "%s/previous" $folder) }}
{{- if $region.kubeconfigSecret }}
{{- $_ := set $fleet "kubeconfig" (printf "/etc/matchpod/clusters/%s/kubeconfig" $region.code) }}
{{- else }}
{{- $_ := set $fleet "console_address_types" (list "PodIP") }}
{{- end }}
{{- else if eq $region.kind "static" }}
{{- $servers := list }}
{{- range $region.servers }}
{{- $servers = append $servers (printf "{ address = %s, rcon_password = %s }" (toJson .address) (toJson .rcon_password)) }}
{{- end }}
servers = [{{ join ", " $servers }}]
{{- else }}
{{- $_ := set $fleet "ports" "27100-27199" }}
{{- end }}
{{- $fleet = mergeOverwrite $fleet (deepCopy (default dict $region.options)) }}
{{- range $key := keys $fleet | sortAlpha }}
{{ include "matchpod.toml" (dict "key" $key "value" (get $fleet $key)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "matchpod.hasSettingsFile" -}}
{{- if or .Values.regions .Values.settingsFile.existingSecret }}true{{ end -}}
{{- end }}

{{/* The environment of every container with the program. Secrets are references, never values. */}}
{{- define "matchpod.environment" -}}
- name: MATCHPOD_DATA_DIR
  value: /var/lib/matchpod/data
{{- if eq .Values.database.kind "postgresql" }}
- name: MATCHPOD_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
{{- end }}
{{- with .Values.secretKey.existingSecret }}
- name: MATCHPOD_SECRET_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.secretKey.key }}
{{- end }}
- name: MATCHPOD_LOG_FORMAT
  value: {{ default "json" .Values.settings.log_format | quote }}
{{- end }}

{{/* A setting as text: YAML reads on and off as true and false, and large numbers as fractions. */}}
{{- define "matchpod.text" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else if kindIs "slice" . }}{{ join "," . }}{{ else if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{/* Containers that read the URL of the database. Every process of the node can read command lines, so programs of
PostgreSQL get the password in a file. */}}
{{- define "matchpod.connection" -}}
- name: connection
  image: {{ include "matchpod.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [python3, -c]
  args:
    - |
      {{- .Files.Get "files/write_service_file.py" | nindent 6 }}
    - /run/connection/pg_service.conf
  env:
    - name: MATCHPOD_DATABASE_URL
      valueFrom:
        secretKeyRef:
          name: {{ .Values.database.existingSecret }}
          key: {{ .Values.database.key }}
  {{- include "matchpod.smallContainer" . | nindent 2 }}
  volumeMounts:
    - name: connection
      mountPath: /run/connection
{{- end }}

{{/* Limits of a container that runs a short script. */}}
{{- define "matchpod.smallContainer" -}}
resources:
  requests:
    cpu: 10m
    memory: 32Mi
  limits:
    memory: 64Mi
securityContext:
  {{- include "matchpod.containerSecurityContext" . | nindent 2 }}
{{- end }}

{{- define "matchpod.backupVolume" -}}
- name: backup
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-backup" (include "matchpod.fullname" .)) .Values.backup.existingClaim }}
{{- end }}

{{- define "matchpod.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
# Otherwise every start would open the data folder to the group of the volume.
fsGroupChangePolicy: OnRootMismatch
{{- range $key, $value := .Values.podSecurityContext }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }}: {{ $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "matchpod.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The volume with the data folder. */}}
{{- define "matchpod.dataVolume" -}}
- name: data
{{- if eq .Values.database.kind "sqlite" }}
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-data" (include "matchpod.fullname" .)) .Values.persistence.existingClaim }}
{{- else }}
  emptyDir:
    sizeLimit: 1Gi
{{- end }}
{{- end }}

{{/* Placement that all pods share. */}}
{{- define "matchpod.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Reject values that fit the schema but cannot work together. All faults are reported at once. */}}
{{- define "matchpod.check" -}}
{{- $faults := list -}}
{{- $isService := not .Values.fleetsOnly -}}
{{- if and $isService (eq .Values.database.kind "sqlite") (gt (int .Values.replicaCount) 1) -}}
{{- $faults = append $faults (printf "replicaCount is %v, but an SQLite database is used by one process only: set it to 1, or database.kind to postgresql." .Values.replicaCount) -}}
{{- end -}}
{{- if and $isService (eq .Values.database.kind "postgresql") (not .Values.database.existingSecret) -}}
{{- $faults = append $faults "database.kind is postgresql, but database.existingSecret does not name the Secret with its URL." -}}
{{- end -}}
{{- if and $isService (eq .Values.database.kind "postgresql") (not .Values.secretKey.existingSecret) -}}
{{- $faults = append $faults "secretKey.existingSecret is required with PostgreSQL: all replicas must have the same key. Make one with: openssl rand -base64 32" -}}
{{- end -}}
{{- $isFolder := not (hasPrefix "s3://" .Values.demos.storage) -}}
{{- if and $isService .Values.demos.enabled $isFolder (or (gt (int .Values.replicaCount) 1) (eq .Values.database.kind "postgresql")) -}}
{{- $faults = append $faults "demos.storage must be a bucket, like s3://bucket/folder, with PostgreSQL or more than one replica: a folder is used by one process only, and there is no volume." -}}
{{- end -}}
{{- $least := add .Values.preStopSeconds .Values.stopGraceSeconds 25 -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (int $least) -}}
{{- $faults = append $faults (printf "terminationGracePeriodSeconds is %v, but stopping takes up to %v s: preStopSeconds, stopGraceSeconds, and 25 s for callbacks." .Values.terminationGracePeriodSeconds $least) -}}
{{- end -}}
{{- if and .Values.settingsFile.existingSecret .Values.regions -}}
{{- $faults = append $faults "settingsFile.existingSecret and regions cannot both be set: the regions are in that file." -}}
{{- end -}}
{{- $codes := list -}}
{{- $fleets := list -}}
{{- $outsideUrl := include "matchpod.outsideUrl" . -}}
{{- range .Values.regions -}}
{{- if has .code $codes -}}
{{- $faults = append $faults (printf "Two regions have the code %s." .code) -}}
{{- end -}}
{{- $codes = append $codes .code -}}
{{- if and (eq .kind "process") (gt (int $.Values.replicaCount) 1) -}}
{{- $faults = append $faults (printf "Region %s is of the kind process, whose servers run inside one pod, but replicaCount is %v." .code $.Values.replicaCount) -}}
{{- end -}}
{{- $isElsewhere := or (eq .kind "static") .kubeconfigSecret -}}
{{- if and $isService $isElsewhere (not .log_url) (not $outsideUrl) -}}
{{- $faults = append $faults (printf "Region %s is not in this cluster, so its game servers cannot post their logs to the Service: set publicUrl, or log_url of the region." .code) -}}
{{- end -}}
{{- if and $isService $isElsewhere $.Values.networkPolicy.enabled (not $.Values.networkPolicy.rcon) -}}
{{- $faults = append $faults (printf "networkPolicy.rcon is empty, so the game servers of region %s could not be reached." .code) -}}
{{- end -}}
{{- if eq .kind "agones" -}}
{{- $game := include "matchpod.gameServer" (dict "root" $ "region" .) | fromJson -}}
{{- $name := include "matchpod.fleetName" (dict "root" $ "region" .) -}}
{{- $selector := ternary dict (default dict .options).selector (and $game.create (not .kubeconfigSecret)) -}}
{{- $fleet := list .kubeconfigSecret (default $.Release.Namespace .namespace) $name $selector | toJson -}}
{{- if has $fleet $fleets -}}
{{- $faults = append $faults (printf "The Fleet of region %s is called %s (names are cut after 63 characters), and so is that of another region: set fleet of the region." .code $name) -}}
{{- end -}}
{{- $fleets = append $fleets $fleet -}}
{{- if and (not .kubeconfigSecret) $game.create (eq $game.kind "cs2") (not $game.image.repository) -}}
{{- $faults = append $faults (printf "Region %s has CS2 servers, but gameServer.image.repository is not set: there is no public image of the game." .code) -}}
{{- end -}}
{{- if and (not .kubeconfigSecret) $game.create (eq $game.kind "cs2") $game.command (not (contains "{game}" (join " " $game.command))) -}}
{{- $faults = append $faults (printf "gameServer.command of region %s does not contain {game}, the server's own folder `game`: use it in place of %s." .code $game.gameFolder) -}}
{{- end -}}
{{- if and (not .kubeconfigSecret) $game.create (eq $game.kind "cs2") (contains "matchpod/{cfg}" (join " " $game.command)) -}}
{{- $faults = append $faults (printf "gameServer.command of region %s contains matchpod/{cfg}, a file that the server does not have: write +exec {cfg}." .code) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.networkPolicy.enabled -}}
{{- if and (include "matchpod.local" . | fromJson).regions (not .Values.networkPolicy.apiServers) -}}
{{- $faults = append $faults "networkPolicy.apiServers is empty, but regions on Agones need the API server: kubectl get endpointslices -n default kubernetes" -}}
{{- end -}}
{{- if and $isService (eq .Values.database.kind "postgresql") (not .Values.networkPolicy.postgresql) -}}
{{- $faults = append $faults "networkPolicy.postgresql is empty, so the database could not be reached." -}}
{{- end -}}
{{- if and $isService .Values.serviceMonitor.enabled (not .Values.networkPolicy.metricsFrom) -}}
{{- $faults = append $faults "networkPolicy.metricsFrom is empty, so every pod could read the metrics: list the peers of Prometheus." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- $faults = append $faults "ingress.host is required with an Ingress." -}}
{{- end -}}
{{- if and .Values.ingress.enabled .Values.ingress.ingest.sourceRanges (not .Values.ingress.controller) -}}
{{- $faults = append $faults "ingress.ingest.sourceRanges needs ingress.controller: otherwise restrict addresses with ingress.ingest.annotations." -}}
{{- end -}}
{{- if and .Values.ingress.enabled .Values.ingress.controller -}}
{{- if and .Values.ingress.ingest.sourceRanges (not (has "/ingest" .Values.ingress.paths)) -}}
{{- $faults = append $faults "ingress.ingest.sourceRanges restricts /ingest, which is not in ingress.paths: add it, or remove the addresses." -}}
{{- end -}}
{{- range .Values.ingress.paths -}}
{{- if or (eq . "/") (hasPrefix "/ingest/" .) -}}
{{- $faults = append $faults (printf "ingress.paths has %s, which leads to /ingest without its addresses and keeps its tokens in access logs: list /ingest, and each other path." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.restore.file -}}
{{- if ne (int .Values.replicaCount) 0 -}}
{{- $faults = append $faults (printf "restore.file is set, but replicaCount is %v: set it to 0 to restore, and remove restore.file afterwards." .Values.replicaCount) -}}
{{- end -}}
{{- if not (or .Values.backup.enabled .Values.backup.existingClaim) -}}
{{- $faults = append $faults "restore.file is set, but there is no volume with backups: set backup.existingClaim." -}}
{{- end -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n%s" (join "\n" $faults)) -}}
{{- end -}}
{{- end }}
