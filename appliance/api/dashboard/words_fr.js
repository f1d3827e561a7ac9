// French.

export const words = `
nav: Rubriques
yes: oui
no: non
save: Enregistrer
set: Régler
create: Créer
delete: Supprimer
cancel: Annuler
running: En cours
done: Terminé
dismiss: Masquer
refresh: Recharger
rename: Renommer {name}
saturation: Saturation
simulate: Simuler
simulate.event: Événement
simulate.send: Envoyer
offline: La centrale est injoignable.
files: Fichiers Lua
key.revoke.what: Révoquer {name}
scenes: Scènes
groups: Groupes
rooms: Pièces
automations: Automatisations
outcome: Faits : {done} sur {all}
nothing: Rien pour l’instant.
broken: Ceci ne peut pas être affiché.
delete.what: Supprimer {name}
offline.since: La centrale est injoignable depuis {time}.
confirm.others: {action} : aussi ce qui n’est pas une lampe ({names}) ?
confirm.command: {action} : {name} ?
confirm.delete: Supprimer {name} ?
confirm.revoke: Révoquer la clé {name} ? Qui l’utilise est exclu aussitôt.
period.hour: Heure
period.day: Jour
period.week: Semaine
period.month: Mois
period.year: Année
files.wrong: Erreurs dans des fichiers Lua : {count}. En l’état, ces fichiers ne s’appliquent pas :
backup.what: État, configuration et fichiers Lua, sans les secrets des clés
backup.download: Télécharger
smoke.true: Fumée
smoke.false: Pas de fumée
water_leak.true: Eau
water_leak.false: Sec
presence.true: Présent
presence.false: Absent
label.own: {name} (propre)
away: {state} depuis {time}
away.hint: Vérifie qu’il a du courant et qu’il est à portée. Ci-dessous, ce qu’il montrait en dernier.
code: Code
code.ask: {name} demande un code.
search: Chercher appareils et pièces
search.found: Trouvés : {count}
search.none: Aucun appareil ni pièce ne porte ce nom.
edit: Favoris et ordre
favourites: Favoris
favourites.mark: Favori : {name}
hidden.mark: Masquer {name}
hidden.count: Masqués : {count} (voir « Favoris et ordre »)
move: Déplacer {name} : glisser ou touches fléchées
fold: Replier {name}
wall: Panneau mural
wall.fill: Plein écran
room.gone: Cette pièce n’existe pas.
room.day: Le dernier jour
timers: Minuteurs
timer.due: se termine {time}
variables: Variables
variable.value: Valeur de {name}
variable.new: Nom d’une nouvelle variable
summary: La maison maintenant
[nav]
home: Maison
automations: Automati­sations
settings: Réglages
[error]
unreachable: La centrale ne répond pas.
status: La centrale a répondu par une erreur ({status}).
other_origin: Cette page ne parle qu’à sa propre centrale, pas à {api}.
no_page: Il n’y a pas de page {address}. Voici la maison.
device_unreachable: L’appareil ne répond pas : {sentence}
insufficient_permissions: Ta clé ne le permet pas.
store_unavailable: La carte du boîtier n’accepte aucun changement pour l’instant : {sentence}
adapter_failed: L’adaptateur de l’appareil a un défaut : {sentence}
body_too_large: C’est trop grand : {sentence}
busy: Trop de commandes attendent cet appareil ; celle-ci n’a pas été envoyée. Réessaie.
cancelled: Cela a été arrêté de l’extérieur.
device_refused: L’appareil a refusé : {sentence}
dropped_by_mode: Cela tourne déjà et n’admet pas d’autre exécution.
internal: La centrale a un défaut ; son journal le nomme.
invalid_request: La centrale ne comprend pas : {sentence}
invalid_value: Ce n’est pas possible ainsi : {sentence}
not_found: Cela n’existe plus : {sentence}
not_ready: La centrale démarre encore : {sentence}
rate_limited: Trop de demandes à la fois. Réessaie dans un instant.
script_failed: Un fichier Lua a échoué : {sentence}
stopping: La centrale s’arrête ; on ne sait pas si la commande a été exécutée.
unsupported: Cet appareil ne sait pas le faire : {sentence}
[home]
devices: Appareils
unassigned: Sans pièce
empty: Pas encore d’appareils.
members: Appareils : {count}
on: En marche
all: Tous ({count})
[device]
events: Événements
gone: Cet appareil n’existe pas.
facts: À propos de cet appareil
history: Valeurs et historique
no_history: Rien n’a été enregistré pendant ce temps.
compare: Comparer
by_day: {attribute} par jour
by_month: {attribute} par mois
hours: Plus ancien que la mémoire de la centrale : des heures, avec moyenne, minimum et maximum.
picture: {attribute}, valeurs : {count}
no_picture: Aucune image n’est encore arrivée.
still: Image de {name}
table: En tableau
uses: Utilisé par
unused: Aucune automatisation ni scène ne le nomme, et personne ne l’a commandé depuis le démarrage.
lua: Commandes en Lua
[fact]
manufacturer: Fabricant
model: Modèle
firmware: Micrologiciel
serial: Numéro de série
area: Zone
parent: Fait partie de
room: Pièce
updated: Dernier changement
seen: Vu pour la dernière fois
id: Identifiant
alias: Id court
[source]
device: à la main
room: avec sa pièce
group: avec son groupe
scene: scène
automation: automatisation
[automation]
no_run: aucune exécution connue
gone: Cette automatisation n’existe pas.
why: Quand elle s’exécute
next: La prochaine fois
last: Dernière exécution
off: désactivée
fill_in: Désactivée : remplis les noms en haut de son fichier, puis active-la.
other_zone: Les heures sont celles du navigateur ; les automatisations utilisent {zone}.
run: Exécuter maintenant
history: Ce qui s’est passé
waits: quand quelque chose arrive
ran: dernière fois {time}{took}
due: prochaine fois {time}
warned: Fait, avec des avertissements
source: Modifier son fichier
[reason]
condition: Pas exécutée : condition {detail}
cooldown: Pas exécutée, trop tôt après la dernière fois : {detail}
duplicate: Pas exécutée, la même chose venait d’arriver : {detail}
mode: Pas exécutée à côté d’une autre : {detail}
disabled: Pas exécutée, elle est désactivée.
brake: Suspendue, elle s’est déclenchée elle-même trop souvent : {detail}
failed: Échec : {detail}
was: était {value}
[step]
sleep: A attendu {duration}
wait: A attendu {what}
[trigger]
title: S’exécute quand
change: {what} change
event: {who} : événement {event}
any_event: {who} : n’importe quel événement
at: À {time}
cron: Selon l’expression {expression} ({zone})
interval: Toutes les {duration}
variable: Variable {name}
timer: Le minuteur {name} se termine
webhook: Le hook {hook} est appelé
adapter: L’adaptateur {name} démarre
any_adapter: Un adaptateur démarre
any_device: N’importe quel appareil
fails: Quelque chose échoue
room: Pièce {name}
group: Groupe {name}
lasting: {what} pendant {duration}
now: maintenant {value}
[condition]
title: Seulement si
after_sunrise: Après le lever du soleil
after_sunset: Après le coucher du soleil
before_sunrise: Avant le lever du soleil
before_sunset: Avant le coucher du soleil
least: Au moins {count} des appareils
most: Au plus {count} des appareils
all: Toutes ces conditions
any: Au moins une de ces conditions
none: Aucune de ces conditions
yes: vrai
no: faux
[doing]
sleep: Attend jusqu’à {time}
computing: Calcule depuis {duration}
[unit]
degree: \u00A0°{of}
percent: \u00A0%
[arrange]
places: Quel appareil est où
up: Monter {name}
down: Descendre {name}
leave: Retirer {name}
add: Ajouter un appareil à {name}
new_rooms: Nom d’une nouvelle pièce
new_groups: Nom d’un nouveau groupe
choose: Choisir {name}
join: Ajouter les appareils choisis à un groupe : {count}
move: Déplacer les appareils choisis : {count}
[box]
adapters: Adaptateurs
last_success: Dernière réponse {time}
figures: La centrale
events: Événements
log: Journal
discovery: Appareils du réseau
page: Cette page
role: ta clé permet : {role}
forget: Oublier la clé
[figure]
version: Version
uptime: En marche depuis
memory: Mémoire
written: Écrit sur la carte SD
[role]
read: voir
write: voir et commander
admin: tout
automation: tout, pour des programmes
[key]
ask: La clé de cette maison
missing: Où la trouver : sudo cat /var/lib/lares/first-key (Raspberry Pi), cat data/first-key (conteneur) ; lares demo l’affiche. Une autre : sudo lares key create --label me --role admin
rejected: La centrale n’accepte pas cette clé. Saisis-en une autre.
secret: Clé
use: Ouvrir
label: Nom d’une nouvelle clé
role: Elle permet
revoke: Révoquer
made: Clé pour {name}
once: Affiché maintenant seulement : scanne-le avec un téléphone pour y ouvrir la maison, ou copie le texte.
qr: Code QR avec l’adresse et la clé
loopback: « {host} » est une adresse de cet appareil seul : le code ne mène un téléphone nulle part. Fais écouter la centrale dans ton réseau, [api] bind_address = "0.0.0.0:3000", ou utilise un proxy inverse, et ouvre cette page à l’adresse du boîtier.
[pairing]
code: Code d’appairage, ou texte du code QR
pair: Appairer
scan: Scanner
hold: Place le code QR devant la caméra.
no_camera: La caméra ne peut pas servir ({reason}). Saisis le code.
done: Appairé : {names}
title: Appairage
share: Partager
shared: Dans l’autre application, sous {minutes} minutes : scanne ceci ou saisis le code.
qr: Code d’appairage pour l’autre application
identify: Identifier
unpair: Dissocier
confirm: Dissocier {names} ? L’appareil oublie cette maison.
press: Pour sa clé : appuie sur le bouton de l’appareil ou du pont, puis sur « Appairer » dans les 30 secondes.
paste: Ajoute cette ligne à [adapters.{name}] dans config/default.toml :
[hook]
label: Identifiant d’un nouveau hook
what: Une adresse qu’appelle un téléphone, un bouton ou un script ; une automatisation avec le déclencheur webhook l’entend.
once: Affichée une seule fois : qui a cette adresse peut appeler le hook, et rien d’autre.
unheard: Rien n’écoute encore ce hook.
qr: Code QR avec l’adresse du hook
address: Adresse
[discovery]
what: Cherche pendant trois secondes les appareils qui s’annoncent
search: Chercher
none: Rien n’a été trouvé. La centrale n’entend pas les appareils d’un autre VLAN, ni depuis un conteneur.
section: Section pour {name}
[action]
on: Allumer
off: Éteindre
toggle: Basculer
set: réglé
increase: Augmenter
decrease: Diminuer
lock: Verrouiller
unlock: Déverrouiller
open: Ouvrir
close: Fermer
stop: Arrêter
play: Lire
next: Suivant
previous: Précédent
press: Appuyer
return_to_base: À la base
clean_spot: Nettoyer ici
start_mowing: Tondre
start: Démarrer
pause: Suspendre
dock: À la base
locate: Localiser
install: Installer
[value]
short: Court
long: Long
on: Allumé
off: Éteint
online: Connecté
offline: Hors ligne
unavailable: Indispo­nible
unknown: Inconnu
open: Ouvert
closed: Fermé
opening: S’ouvre
closing: Se ferme
stopped: Arrêté
jammed: Bloqué
locked: Verrouillé
unlocked: Déverrouillé
detected: Détecté
clear: Calme
occupied: Occupé
unoccupied: Libre
heat: Chauffer
cool: Refroidir
auto: Automatique
heat_cool: Chauffer et refroidir
dry: Sécher
fan_only: Ventilateur seul
idle: Au repos
heating: Chauffe
cooling: Refroidit
playing: En lecture
paused: En pause
good: Bon
poor: Mauvais
running: En marche
starting: Démarre
degraded: Perturbé
ok: Fait
error: Échec
unsupported: Impossible ici
skipped: Pas exécuté
dropped: Rejeté
cancelled: Annulé
timeout: A duré trop longtemps
disarmed: Désarmée
armed_home: Armée, à la maison
armed_away: Armée, absent
armed_night: Armée, nuit
armed_vacation: Armée, vacances
armed_custom_bypass: Armée en partie
arming: S’arme
disarming: Se désarme
pending: Attend le code
triggered: Alarme
cleaning: Nettoie
docked: À la base
returning: Revient
mowing: Tond
forward: Avant
reverse: Arrière
none: Aucun
[attribute]
white: Blanc
cold_white: Blanc froid
warm_white: Blanc chaud
flash: Clignotement
power: Marche/arrêt
brightness: Luminosité
color_temperature: Chaleur
color: Couleur
fan_speed: Aspiration
percentage: Vitesse
duration: Durée en secondes
volume_level: Volume
tone: Son
oscillation: Oscillation
direction: Sens
target_humidity: Humidité voulue
mode: Mode
fan_mode: Ventilateur
swing_mode: Oscillation
color_mode: Mode de couleur
effect: Effet
transition: Transition
illuminance: Lumière
temperature: Température
temperature_outdoor: Dehors
temperature_apparent: Ressentie
humidity: Humidité
pressure: Pression
co2: CO₂
air_quality: Air
battery: Batterie
motion: Mouvement
contact: Contact
occupancy: Occupation
presence: Présence
smoke: Fumée
water_leak: Fuite d’eau
target_temperature: Consigne
hvac_mode: Mode
hvac_state: État
preset_mode: Préréglage
power_consumption: Puissance
voltage: Tension
current: Courant
energy_total: Énergie
energy_today: Aujourd’hui
energy_yesterday: Hier
energy_month: Mois
volume: Volume
muted: Muet
media_source: Source
media_app: Appli
media_title: Titre
media_playback: Lecture
lock: Serrure
door: Porte
garage_door: Garage
cover_position: Position
cover_tilt: Inclinaison
wind_speed: Vent
wind_direction: Vent de
rainfall: Pluie
weather_condition: Météo
cloud_coverage: Nuages
state: État
[settings]
devices: Appareils et adaptateurs
devices.what: Trouver, ajouter, associer
rooms: Pièces et groupes
rooms.what: Noms, et la place de chaque appareil
keys: Clés
keys.what: Accès pour téléphones, personnes et programmes
hooks: Hooks
hooks.what: Adresses qui lancent des automatisations
backup: Sauvegarde
backup.what: Tout télécharger en un fichier
look: Apparence et langue
look.what: De ce navigateur
about: À propos
about.what: Version, mémoire et carte SD
diagnostics: Diagnostic
diagnostics.what: Journal et événements en direct
add: Ajouter un appareil
[look]
scheme: Couleurs
auto: Comme l’appareil
light: Clair
dark: Sombre
language: Langue
browser: Comme le navigateur
hint: Les deux ne sont gardés que dans ce navigateur.
[summary]
lit_one: {name} : allumée
lit_many: {count} lumières allumées
indoors: {value} dedans
open_one: {name} : ouvert
open_many: {count} ouverts
unlocked_one: {name} : déverrouillé
unlocked_many: {count} déverrouillés
locked_one: {name} : verrouillé
locked_many: Tout verrouillé
away_one: {name} : injoignable
away_many: {count} injoignables
low_one: {name} : pile {share}
low_many: {count} piles faibles
alarm_many: {count} alarmes
[state]
open: {share} ouvert
[first]
search: Chercher dans mon réseau
add: Relier un broker ou un autre appareil
docs: Le fichier docs/first-evening.md montre les premiers pas.
[search]
close: Fermer la recherche
[sheet]
close: Fermer
more: Tout sur cet appareil
today: Les dernières 24 heures
why: Pourquoi est-ce ainsi ?
[reading]
detected: Mouvement
clear: Aucun mouvement
occupied: Occupé
unoccupied: Personne
[chart]
mean: Moyenne
span: Minimum à maximum
[cause]
device_state_change: Un appareil change
weather_state: La météo change
device_event: Un appareil signale un événement
variable_change: Une variable change
timer: Un minuteur se termine
webhook: Un hook est appelé
adapter_lifecycle: Un adaptateur démarre ou s’arrête
system_error: Quelque chose échoue
wall_clock: À son heure
cron: À son heure
date: À son heure
interval: À son intervalle
sunrise: Au lever du soleil
sunset: Au coucher du soleil
[editor]
try: Essayer
simulate: Les prochaines 24 heures
versions: Versions antérieures
saved: Enregistré et en vigueur.
saved_warned: Enregistré, avec des avertissements : {count}. La marge les montre.
unsaved: Pas encore enregistré.
other: Quelqu’un d’autre a modifié ce fichier. Les différences avec ton texte :
theirs: Prendre l’autre texte
mine: Enregistrer mon texte
line: Ligne {line} :
keys: Ctrl+S enregistre, Ctrl+Espace complète les noms, Ctrl+F cherche, F8 va à l’erreur suivante. Tab quitte le champ.
save_and_run: Enregistrer et exécuter
no_id: Le fichier n’indique pas encore d’id.
with_commands: Avec ses commandes
look: Regarder
never: Rien ne la lance pendant ce temps.
cut: Seulement jusqu’à {time} : le reste serait trop long.
restore: Prendre ce texte
difference: Différences
equal: Aucune différence.
runs: Elle s’exécute
test: Tester
events: Événements, un par ligne (18:00 hall:motion motion detected)
settings: Réglages, un par ligne (key = value)
recording: Enregistrement (fichier d’un essai précédent)
replay: Rejouer
record: Garder l’enregistrement
[new]
title: Nouveau
recipes: À partir d’une recette
gone: Il n’y a pas de recette {name}.
empty: À partir d’un fichier vide
empty_what: Tu l’écris en Lua, avec complétion et vérifications.
automation: Automatisation
scene: Scène
adapter: Type d’adaptateur
adapter_name: Nouveau type
automation_name: Nouvelle automatisation
scene_name: Nouvelle scène
name: Nom
make: Créer
anyway: Créer quand même
no_device: {label} : aucun appareil de cette maison ne le montre.
no_room: {label} : crée d’abord une pièce dans Réglages.
no_group: {label} : crée d’abord un groupe dans Réglages.
[duration]
second: secondes
minute: minutes
hour: heures
[add]
title: Ajouter par adresse
kind: Type
base_url: Adresse (URL)
url: Adresse (URL)
host: Nom d’hôte ou adresse IP
ip_address: Adresse IP
port: Port
username: Nom d’utilisateur (s’il y en a un)
password: Mot de passe (s’il y en a un)
section: Nom de la section
rule: Utilise seulement a-z, 0-9 et _.
make: Ajouter
this: Ajouter cet appareil
done: Ajouté. Il démarre.
other: Tous les autres types et clés : modifier la configuration.
confirm_remove: Retirer {name} de la configuration ? Ses appareils disparaissent ; leurs pièces et noms restent.
more: Autres réglages
test: Tester
found: Réponse reçue : {names}
found_none: Réponse reçue, mais aucun appareil pour l’instant.
trace: Requêtes et réponses
edit: Modifier {name}
kept: Inchangé
in_file: À modifier dans le fichier.
gone: Il n’y a pas de section {name}.
token: Jeton (s’il y en a un)
default: Par défaut : {value}
saved: Enregistré. Il redémarre maintenant.
[kind]
mqtt: Broker MQTT (Zigbee2MQTT, ESPHome, Tasmota)
hue: Pont Philips Hue
tasmota_http: Tasmota par HTTP
elgato_lights: Lampe Elgato
roku_tv: Roku TV
matter: Serveur Matter
fritzbox: FRITZ!Box (qui est à la maison)
notify: Messages
virtual: Appareils virtuels
[copy]
what: Copier : {name}
done: Copié : {name}
[alias]
rule: Utilise a-z, 0-9 et _, et commence par une lettre.
offer: Donne-lui aussi un id court : les automatisations peuvent l’utiliser au lieu du long.
`;
