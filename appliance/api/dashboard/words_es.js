// Spanish.

export const words = `
nav: Secciones
yes: sí
no: no
save: Guardar
set: Fijar
create: Crear
delete: Eliminar
cancel: Cancelar
running: En marcha ahora
done: Listo
dismiss: Ocultar
refresh: Recargar
rename: Cambiar el nombre de {name}
saturation: Saturación
simulate: Simular
simulate.event: Suceso
simulate.send: Enviar
offline: No se llega a la central.
files: Archivos Lua
key.revoke.what: Revocar {name}
scenes: Escenas
groups: Grupos
rooms: Habitaciones
automations: Automatizaciones
outcome: Hechos: {done} de {all}
nothing: Nada todavía.
broken: Esto no se puede mostrar.
delete.what: Eliminar {name}
offline.since: No se llega a la central desde {time}.
confirm.others: {action}: ¿también lo que no es luz ({names})?
confirm.command: ¿{action}: {name}?
confirm.delete: ¿Eliminar {name}?
confirm.revoke: ¿Revocar la clave {name}? Quien la usa queda fuera al instante.
period.hour: Hora
period.day: Día
period.week: Semana
period.month: Mes
period.year: Año
files.wrong: Fallos en archivos Lua: {count}. Así, estos archivos no están en vigor:
backup.what: Estado, configuración y archivos Lua, sin los secretos de las claves
backup.download: Descargar
smoke.true: Humo
smoke.false: Sin humo
water_leak.true: Agua
water_leak.false: Seco
presence.true: Presente
presence.false: Ausente
label.own: {name} (propio)
away: {state} desde {time}
away.hint: Comprueba que tiene corriente y está al alcance. Abajo está lo último que mostró.
code: Código
code.ask: {name} pide un código.
search: Buscar dispositivos y habitaciones
search.found: Encontrados: {count}
search.none: Ningún dispositivo ni habitación se llama así.
edit: Favoritos y orden
favourites: Favoritos
favourites.mark: Favorito: {name}
hidden.mark: Ocultar {name}
hidden.count: Ocultos: {count} (véase «Favoritos y orden»)
move: Mover {name}: arrastrar o teclas de flecha
fold: Plegar {name}
wall: Panel de pared
wall.fill: Pantalla completa
room.gone: Esta habitación no existe.
room.day: El último día
timers: Temporizadores
timer.due: termina {time}
variables: Variables
variable.value: Valor de {name}
variable.new: Nombre de una variable nueva
summary: La casa ahora
[nav]
home: Casa
automations: Automati­zaciones
settings: Ajustes
[error]
unreachable: La central no responde.
status: La central respondió con un error ({status}).
other_origin: Esta página solo habla con su propia central, no con {api}.
no_page: No hay ninguna página {address}. Esta es la casa.
device_unreachable: El dispositivo no responde: {sentence}
insufficient_permissions: Tu clave no lo permite.
store_unavailable: La tarjeta del equipo no admite cambios ahora: {sentence}
adapter_failed: El adaptador del dispositivo tiene un fallo: {sentence}
body_too_large: Es demasiado grande: {sentence}
busy: Demasiadas órdenes esperan a este dispositivo; esta no se envió. Inténtalo de nuevo.
cancelled: Se terminó desde fuera.
device_refused: El dispositivo se negó: {sentence}
dropped_by_mode: Ya está en marcha y no admite otra ejecución.
internal: La central tiene un fallo; su registro lo nombra.
invalid_request: La central no lo entiende: {sentence}
invalid_value: Así no es posible: {sentence}
not_found: Ya no existe: {sentence}
not_ready: La central está arrancando: {sentence}
rate_limited: Demasiadas peticiones a la vez. Inténtalo dentro de un momento.
script_failed: Falló un archivo Lua: {sentence}
stopping: La central se está deteniendo; no se sabe si la orden se cumplió.
unsupported: Este dispositivo no puede hacerlo: {sentence}
[home]
devices: Dispositivos
unassigned: Sin habitación
empty: Aún no hay dispositivos.
members: Dispositivos: {count}
on: Encendido ahora
all: Todos ({count})
[device]
events: Eventos
gone: Este dispositivo no existe.
facts: Sobre este dispositivo
history: Valores e historial
no_history: No se registró nada en este tiempo.
compare: Comparar
by_day: {attribute} por día
by_month: {attribute} por mes
hours: Más antiguo que lo que la central recuerda: horas con media, mínimo y máximo.
picture: {attribute}, valores: {count}
no_picture: Aún no ha llegado ninguna imagen.
still: Imagen de {name}
table: Como tabla
uses: Lo usan
unused: Ninguna automatización ni escena lo nombra, y nadie lo ha mandado desde el arranque.
lua: Órdenes en Lua
[fact]
manufacturer: Fabricante
model: Modelo
firmware: Firmware
serial: Número de serie
area: Zona
parent: Parte de
room: Habitación
updated: Último cambio
seen: Visto por última vez
id: Identificador
alias: Id corta
[source]
device: a mano
room: con su habitación
group: con su grupo
scene: escena
automation: automatización
[automation]
no_run: ninguna ejecución conocida
gone: Esta automatización no existe.
why: Cuándo se ejecuta
next: La próxima vez
last: Última ejecución
off: apagada
fill_in: Apagada: escribe los nombres al principio de su archivo y después enciéndela.
other_zone: Las horas son las del navegador; las automatizaciones usan {zone}.
run: Ejecutar ahora
history: Qué ocurrió
waits: cuando ocurra algo
ran: última vez {time}{took}
due: próxima vez {time}
warned: Hecho, con advertencias
source: Editar su archivo
[reason]
condition: No se ejecutó: condición {detail}
cooldown: No se ejecutó, demasiado pronto tras la última vez: {detail}
duplicate: No se ejecutó, acababa de ocurrir lo mismo: {detail}
mode: No se ejecutó junto a otra ejecución: {detail}
disabled: No se ejecutó, está apagada.
brake: Detenida, se disparó a sí misma demasiado: {detail}
failed: Falló: {detail}
was: era {value}
[step]
sleep: Esperó {duration}
wait: Esperó a {what}
[trigger]
title: Se ejecuta cuando
change: {what} cambia
event: {who}: evento {event}
any_event: {who}: cualquier evento
at: A las {time}
cron: Según la expresión {expression} ({zone})
interval: Cada {duration}
variable: Variable {name}
timer: El temporizador {name} termina
webhook: Se llama al hook {hook}
adapter: El adaptador {name} arranca
any_adapter: Un adaptador arranca
any_device: Cualquier dispositivo
fails: Algo falla
room: Habitación {name}
group: Grupo {name}
lasting: {what} durante {duration}
now: ahora {value}
[condition]
title: Solo si
after_sunrise: Después del amanecer
after_sunset: Después del atardecer
before_sunrise: Antes del amanecer
before_sunset: Antes del atardecer
least: Al menos {count} de los dispositivos
most: Como máximo {count} de los dispositivos
all: Todo esto
any: Al menos una de estas condiciones
none: Ninguna de estas condiciones
yes: se cumple
no: no se cumple
[doing]
sleep: Espera hasta {time}
computing: Calcula desde hace {duration}
[unit]
degree: \u00A0°{of}
percent: \u00A0%
[arrange]
places: Qué dispositivo está dónde
up: Subir {name}
down: Bajar {name}
leave: Quitar {name}
add: Añadir un dispositivo a {name}
new_rooms: Nombre de una habitación nueva
new_groups: Nombre de un grupo nuevo
choose: Elegir {name}
join: Añadir los elegidos a un grupo: {count}
move: Mover los dispositivos elegidos: {count}
[box]
adapters: Adaptadores
last_success: Última respuesta {time}
figures: La central
events: Sucesos
log: Registro
discovery: Dispositivos en la red
page: Esta página
role: tu clave puede: {role}
forget: Olvidar la clave
[figure]
version: Versión
uptime: En marcha desde
memory: Memoria
written: Escrito en la tarjeta SD
[role]
read: ver
write: ver y mandar
admin: todo
automation: todo, para programas
[key]
ask: La clave de esta casa
missing: Dónde está: sudo cat /var/lib/lares/first-key (Raspberry Pi), cat data/first-key (contenedor); lares demo la muestra. Otra nueva: sudo lares key create --label me --role admin
rejected: La central no acepta esta clave. Escribe otra.
secret: Clave
use: Abrir
label: Nombre de una clave nueva
role: Puede
revoke: Revocar
made: Clave para {name}
once: Solo se muestra ahora: escanéalo con un teléfono para abrir allí la casa, o copia el texto.
qr: Código QR con la dirección y la clave
loopback: «{host}» es una dirección solo de este aparato: el código no lleva a ningún teléfono. Haz que la central escuche en tu red, [api] bind_address = "0.0.0.0:3000", o usa un proxy inverso, y abre esta página en la dirección del equipo.
[pairing]
code: Código de emparejamiento, o texto del código QR
pair: Emparejar
scan: Escanear
hold: Pon el código QR delante de la cámara.
no_camera: No se puede usar la cámara ({reason}). Escribe el código.
done: Emparejado: {names}
title: Emparejamiento
share: Compartir
shared: En la otra aplicación, en {minutes} minutos: escanea esto o introduce el código.
qr: Código de emparejamiento para la otra aplicación
identify: Identificar
unpair: Desemparejar
confirm: ¿Desemparejar {names}? El dispositivo olvida esta casa.
press: Para su clave: pulsa el botón del dispositivo o puente y, antes de 30 segundos, «Emparejar».
paste: Añade esta línea a [adapters.{name}] en config/default.toml:
[hook]
label: Id de un hook nuevo
what: Una dirección a la que llama un teléfono, un pulsador o un script; la oye una automatización con el desencadenante webhook.
once: Solo se muestra ahora: quien tenga esta dirección puede llamar al hook y nada más.
unheard: Nada escucha todavía este hook.
qr: Código QR con la dirección del hook
address: Dirección
[discovery]
what: Busca durante tres segundos dispositivos que se anuncian
search: Buscar
none: No se encontró nada. Una central no oye los dispositivos de otra VLAN, ni desde un contenedor.
section: Sección para {name}
[action]
on: Encender
off: Apagar
toggle: Cambiar
set: fijado
increase: Aumentar
decrease: Reducir
lock: Bloquear
unlock: Desbloquear
open: Abrir
close: Cerrar
stop: Parar
play: Reproducir
next: Siguiente
previous: Anterior
press: Pulsar
return_to_base: A la base
clean_spot: Limpiar aquí
start_mowing: Cortar el césped
start: Empezar
pause: Pausar
dock: A la base
locate: Localizar
install: Instalar
[value]
short: Corto
long: Largo
on: Encendido
off: Apagado
online: Conectado
offline: Sin conexión
unavailable: No disponi­ble
unknown: Desconocido
open: Abierto
closed: Cerrado
opening: Se abre
closing: Se cierra
stopped: Parado
jammed: Atascado
locked: Bloqueada
unlocked: Desbloqueada
detected: Detectado
clear: Nada
occupied: Ocupado
unoccupied: Libre
heat: Calentar
cool: Enfriar
auto: Automático
heat_cool: Calentar y enfriar
dry: Secar
fan_only: Solo ventilador
idle: En espera
heating: Calienta
cooling: Enfría
playing: Reproduce
paused: En pausa
good: Bueno
poor: Malo
running: En marcha
starting: Arranca
degraded: Con problemas
ok: Hecho
error: Falló
unsupported: Aquí no es posible
skipped: No ejecutado
dropped: Descartado
cancelled: Cancelado
timeout: Tardó demasiado
disarmed: Desarmada
armed_home: Armada, en casa
armed_away: Armada, fuera
armed_night: Armada, noche
armed_vacation: Armada, vacaciones
armed_custom_bypass: Armada en parte
arming: Se arma
disarming: Se desarma
pending: Espera el código
triggered: Alarma
cleaning: Limpia
docked: En la base
returning: Vuelve
mowing: Corta el césped
forward: Adelante
reverse: Atrás
none: Ninguno
[attribute]
white: Blanco
cold_white: Blanco frío
warm_white: Blanco cálido
flash: Parpadeo
power: Encendido
brightness: Brillo
color_temperature: Calidez
color: Color
fan_speed: Aspiración
percentage: Velocidad
duration: Duración en segundos
volume_level: Volumen
tone: Tono
oscillation: Oscilar
direction: Dirección
target_humidity: Humedad deseada
mode: Modo
fan_mode: Ventilador
swing_mode: Oscilar
color_mode: Modo de color
effect: Efecto
transition: Transición
illuminance: Luz
temperature: Temperatura
temperature_outdoor: Fuera
temperature_apparent: Sensación
humidity: Humedad
pressure: Presión
co2: CO₂
air_quality: Aire
battery: Batería
motion: Movimiento
contact: Contacto
occupancy: Ocupación
presence: Presencia
smoke: Humo
water_leak: Fuga de agua
target_temperature: Deseada
hvac_mode: Modo
hvac_state: Estado
preset_mode: Ajuste
power_consumption: Potencia
voltage: Tensión
current: Corriente
energy_total: Energía
energy_today: Hoy
energy_yesterday: Ayer
energy_month: Mes
volume: Volumen
muted: Silencio
media_source: Fuente
media_app: App
media_title: Título
media_playback: Reproducción
lock: Cerradura
door: Puerta
garage_door: Garaje
cover_position: Posición
cover_tilt: Inclinación
wind_speed: Viento
wind_direction: Viento de
rainfall: Lluvia
weather_condition: Tiempo
cloud_coverage: Nubes
state: Estado
[settings]
devices: Dispositivos y adaptadores
devices.what: Buscar, añadir, vincular
rooms: Habitaciones y grupos
rooms.what: Nombres, y dónde está cada dispositivo
keys: Claves
keys.what: Acceso para teléfonos, personas y programas
hooks: Hooks
hooks.what: Direcciones que inician automatizaciones
backup: Copia de seguridad
backup.what: Descargar todo en un archivo
look: Aspecto e idioma
look.what: De este navegador
about: Acerca de
about.what: Versión, memoria y tarjeta SD
diagnostics: Diagnóstico
diagnostics.what: Registro y eventos en directo
add: Añadir un dispositivo
[look]
scheme: Colores
auto: Como el dispositivo
light: Claro
dark: Oscuro
language: Idioma
browser: Como el navegador
hint: Ambos se guardan solo en este navegador.
[summary]
lit_one: {name}: encendida
lit_many: {count} luces encendidas
indoors: {value} dentro
open_one: {name}: abierto
open_many: {count} abiertos
unlocked_one: {name}: sin cerrar con llave
unlocked_many: {count} sin cerrar con llave
locked_one: {name}: cerrado con llave
locked_many: Todo cerrado con llave
away_one: {name}: inaccesible
away_many: {count} inaccesibles
low_one: {name}: batería {share}
low_many: {count} baterías bajas
alarm_many: {count} alarmas
[state]
open: {share} abierto
[first]
search: Buscar en mi red
add: Conectar un broker u otro dispositivo
docs: El archivo docs/first-evening.md muestra los primeros pasos.
[search]
close: Cerrar la búsqueda
[sheet]
close: Cerrar
more: Todo sobre este dispositivo
today: El último día
why: ¿Por qué está así?
[reading]
detected: Movimiento
clear: Sin movimiento
occupied: Ocupado
unoccupied: Nadie
[chart]
mean: Media
span: Mínimo a máximo
[cause]
device_state_change: Un dispositivo cambia
weather_state: El tiempo cambia
device_event: Un dispositivo comunica un evento
variable_change: Una variable cambia
timer: Un temporizador termina
webhook: Se llama a un hook
adapter_lifecycle: Un adaptador arranca o se detiene
system_error: Algo falla
wall_clock: A su hora
cron: A su hora
date: A su hora
interval: En su intervalo
sunrise: Al amanecer
sunset: Al atardecer
[editor]
try: Probar ahora
simulate: Próximas 24 horas
versions: Versiones anteriores
saved: Guardado y en vigor.
saved_warned: Guardado, con advertencias: {count}. El margen las muestra.
unsaved: Aún sin guardar.
other: Otra persona ha cambiado este archivo. Las diferencias con tu texto:
theirs: Tomar el otro texto
mine: Guardar mi texto
line: Línea {line}:
keys: Ctrl+S guarda, Ctrl+Espacio completa nombres, Ctrl+F busca, F8 va al siguiente error. Tab sale del campo.
save_and_run: Guardar y ejecutar
no_id: El archivo aún no indica ninguna id.
with_commands: Con sus órdenes
look: Mirar adelante
never: Nada la inicia en este tiempo.
cut: Solo hasta {time}: el resto tardaría demasiado.
restore: Tomar este texto
difference: Diferencias
equal: Sin diferencias.
runs: Se ejecuta
test: Probar
events: Eventos, uno por línea (18:00 hall:motion motion detected)
settings: Ajustes, uno por línea (key = value)
recording: Grabación (archivo de una prueba anterior)
replay: Reproducir
record: Guardar la grabación
[new]
title: Nueva
recipes: Con una receta
gone: No hay ninguna receta {name}.
empty: Desde un archivo vacío
empty_what: La escribes en Lua, con autocompletado y comprobaciones.
automation: Automatización
scene: Escena
adapter: Tipo de adaptador
adapter_name: Nuevo tipo
automation_name: Nueva automatización
scene_name: Nueva escena
name: Nombre
make: Crear
anyway: Crear de todos modos
no_device: {label}: ningún dispositivo de esta casa lo muestra.
no_room: {label}: crea primero una habitación en Ajustes.
no_group: {label}: crea primero un grupo en Ajustes.
[duration]
second: segundos
minute: minutos
hour: horas
[add]
title: Añadir por dirección
kind: Tipo
base_url: Dirección (URL)
url: Dirección (URL)
host: Nombre o dirección IP
ip_address: Dirección IP
port: Puerto
username: Usuario (si lo hay)
password: Contraseña (si la hay)
section: Nombre de la sección
rule: Usa solo a-z, 0-9 y _.
make: Añadir
this: Añadir este dispositivo
done: Añadido. Se inicia ahora.
other: Los demás tipos y claves: editar la configuración.
confirm_remove: ¿Quitar {name} de la configuración? Sus dispositivos desaparecen; sus habitaciones y nombres quedan.
more: Más ajustes
test: Probar
found: Responde: {names}
found_none: Responde, pero aún no muestra ningún dispositivo.
trace: Peticiones y respuestas
edit: Cambiar {name}
kept: Sin cambios
in_file: Cambia esto en el archivo.
gone: No hay ninguna sección {name}.
token: Token (si lo hay)
default: Lo habitual: {value}
saved: Guardado. Ahora se reinicia.
[kind]
mqtt: Broker MQTT (Zigbee2MQTT, ESPHome, Tasmota)
hue: Puente Philips Hue
tasmota_http: Tasmota por HTTP
elgato_lights: Luz Elgato
roku_tv: Roku TV
matter: Servidor Matter
fritzbox: FRITZ!Box (quién está en casa)
notify: Mensajes
virtual: Dispositivos virtuales
[copy]
what: Copiar: {name}
done: Copiado: {name}
[alias]
rule: Usa a-z, 0-9 y _, y empieza con una letra.
offer: Dale también una id corta: las automatizaciones pueden usarla en vez de la larga.
`;
