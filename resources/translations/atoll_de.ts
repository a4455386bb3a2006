<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context>
    <name>Alerts</name>
    <message>
        <source>The run has finished.</source>
        <translation>Der Lauf ist beendet.</translation>
    </message>
    <message>
        <source>The island reports: %1</source>
        <translation>Die Insel meldet: %1</translation>
    </message>
    <message>
        <source>The agent reports: %1</source>
        <translation>Der Agent meldet: %1</translation>
    </message>
    <message>
        <source>Finished: the round is completed, and this machine trains no more.</source>
        <translation>Abgeschlossen: Die Runde ist vollständig, und dieser Rechner trainiert nicht mehr.</translation>
    </message>
    <message>
        <source>An attempt at averaging round %1 failed; it is tried again.</source>
        <translation>Ein Versuch, Runde %1 zu mitteln, schlug fehl; er wird wiederholt.</translation>
    </message>
    <message>
        <source>Round %1 was averaged without this machine&apos;s contribution.</source>
        <translation>Runde %1 wurde ohne den Beitrag dieses Rechners gemittelt.</translation>
    </message>
    <message>
        <source>The GPUs&apos; power limit is not in force: %1</source>
        <translation>Die Leistungsgrenze der GPUs gilt nicht: %1</translation>
    </message>
    <message>
        <source>GPU %1 is at %2 °C, above its limit of %3 °C: training pauses until it is cooler.</source>
        <translation>GPU %1 hat %2 °C, mehr als ihre Grenze von %3 °C: Das Training pausiert, bis sie kühler ist.</translation>
    </message>
    <message>
        <source>GPU %1 is at %2 °C again, its limit is %3 °C: training goes on.</source>
        <translation>GPU %1 hat wieder %2 °C, ihre Grenze ist %3 °C: Das Training geht weiter.</translation>
    </message>
    <message>
        <source>Joined.</source>
        <translation>Beigetreten.</translation>
    </message>
    <message>
        <source>Joining failed: %1</source>
        <translation>Der Beitritt schlug fehl: %1</translation>
    </message>
</context>
<context>
    <name>CheckTitles</name>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>Main memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Open files allowed</source>
        <translation>Erlaubte offene Dateien</translation>
    </message>
    <message>
        <source>Shared memory</source>
        <translation>Gemeinsamer Speicher</translation>
    </message>
    <message>
        <source>Locked memory allowed</source>
        <translation>Erlaubter fester Speicher</translation>
    </message>
    <message>
        <source>Free disk space</source>
        <translation>Freier Plattenplatz</translation>
    </message>
    <message>
        <source>Disk writing</source>
        <translation>Schreiben auf Platte</translation>
    </message>
    <message>
        <source>GPU driver</source>
        <translation>GPU-Treiber</translation>
    </message>
    <message>
        <source>GPU model</source>
        <translation>GPU-Modell</translation>
    </message>
    <message>
        <source>GPU libraries</source>
        <translation>GPU-Bibliotheken</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>GPU-Speicher</translation>
    </message>
    <message>
        <source>GPU memory errors (ECC)</source>
        <translation>GPU-Speicherfehler (ECC)</translation>
    </message>
    <message>
        <source>GPU temperature</source>
        <translation>GPU-Temperatur</translation>
    </message>
    <message>
        <source>GPU faults (Xid)</source>
        <translation>GPU-Fehler (Xid)</translation>
    </message>
    <message>
        <source>GPU speed (bf16)</source>
        <translation>GPU-Leistung (bf16)</translation>
    </message>
    <message>
        <source>GPUs equally fast</source>
        <translation>GPUs gleich schnell</translation>
    </message>
    <message>
        <source>GPU memory bandwidth</source>
        <translation>GPU-Speicherbandbreite</translation>
    </message>
    <message>
        <source>Link to the GPUs (PCIe)</source>
        <translation>Weg zu den GPUs (PCIe)</translation>
    </message>
    <message>
        <source>Link between GPUs (NVLink)</source>
        <translation>Weg zwischen GPUs (NVLink)</translation>
    </message>
    <message>
        <source>Clock</source>
        <translation>Uhr</translation>
    </message>
    <message>
        <source>TCP congestion control</source>
        <translation>TCP-Staukontrolle</translation>
    </message>
    <message>
        <source>Round trip to the hub</source>
        <translation>Umlaufzeit zum Hub</translation>
    </message>
    <message>
        <source>Bandwidth to the hub</source>
        <translation>Bandbreite zum Hub</translation>
    </message>
    <message>
        <source>Buffers for long links</source>
        <translation>Puffer für weite Verbindungen</translation>
    </message>
    <message>
        <source>Packet loss</source>
        <translation>Paketverlust</translation>
    </message>
    <message>
        <source>Time for synchronisation</source>
        <translation>Zeit für Abgleiche</translation>
    </message>
    <message>
        <source>Reachable from outside</source>
        <translation>Von außen erreichbar</translation>
    </message>
    <message>
        <source>Way to the other islands</source>
        <translation>Weg zu anderen Inseln</translation>
    </message>
    <message>
        <source>Pass</source>
        <translation>OK</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>Fail</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Skipped</source>
        <translation>Entfällt</translation>
    </message>
</context>
<context>
    <name>CheckpointTrouble</name>
    <message>
        <source>The disk is full. Export to a directory on another disk, or free some space, then try again.</source>
        <translation>Die Platte ist voll. Exportieren Sie in ein Verzeichnis auf einer anderen Platte, oder schaffen Sie Platz, und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Nothing may be written there. Export to a directory that is yours.</source>
        <translation>Dort darf nicht geschrieben werden. Exportieren Sie in ein Verzeichnis, das Ihnen gehört.</translation>
    </message>
    <message>
        <source>A file or directory is missing. Look at the path, then try again.</source>
        <translation>Eine Datei oder ein Verzeichnis fehlt. Prüfen Sie den Pfad, und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>No agent runs there. Start it, or wait until it has started, then try again.</source>
        <translation>Dort läuft kein Agent. Starten Sie ihn, oder warten Sie, bis er gestartet ist, und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>This machine has joined no run yet, so there is no model.</source>
        <translation>Dieser Rechner ist noch keinem Lauf beigetreten, daher gibt es kein Modell.</translation>
    </message>
    <message>
        <source>It took too long. Try again when the machine has less to do.</source>
        <translation>Es dauerte zu lange. Versuchen Sie es noch einmal, wenn der Rechner weniger zu tun hat.</translation>
    </message>
    <message>
        <source>The machine cannot be reached. Try again when the connection stands.</source>
        <translation>Der Rechner ist nicht erreichbar. Versuchen Sie es noch einmal, wenn die Verbindung steht.</translation>
    </message>
    <message>
        <source>Another version of Atoll is installed there. Install the same one on both machines.</source>
        <translation>Dort ist eine andere Fassung von Atoll installiert. Installieren Sie auf beiden Rechnern dieselbe.</translation>
    </message>
    <message>
        <source>It was cut short. Try again.</source>
        <translation>Es wurde abgebrochen. Versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Try again; the page Logs may say more.</source>
        <translation>Versuchen Sie es noch einmal; mehr sagt vielleicht die Seite „Protokolle“.</translation>
    </message>
    <message>
        <source>The model was not exported.</source>
        <translation>Das Modell wurde nicht exportiert.</translation>
    </message>
    <message>
        <source>A checkpoint is damaged.</source>
        <translation>Ein Sicherungspunkt ist beschädigt.</translation>
    </message>
    <message>
        <source>Remove its file: the island fetches the state from the others when it starts the next time.</source>
        <translation>Löschen Sie seine Datei: Die Insel holt sich den Zustand beim nächsten Start von den anderen.</translation>
    </message>
    <message>
        <source>The checkpoints were not verified.</source>
        <translation>Die Sicherungspunkte wurden nicht geprüft.</translation>
    </message>
</context>
<context>
    <name>CommandLine</name>
    <message>
        <source>Check this machine, join a run, and watch what its island does.</source>
        <translation>Diesen Rechner prüfen, einem Lauf beitreten und sehen, was seine Insel tut.</translation>
    </message>
    <message>
        <source>The agent&apos;s home (default: this user&apos;s agent).</source>
        <translation>Verzeichnis des Agenten (Vorgabe: der Agent dieses Benutzers).</translation>
    </message>
    <message>
        <source>Another machine too: ssh://user@node. May be given several times.</source>
        <translation>Auch ein anderer Rechner: ssh://user@node. Mehrmals möglich.</translation>
    </message>
    <message>
        <source>Show a recording instead of a machine.</source>
        <translation>Eine Aufzeichnung statt eines Rechners zeigen.</translation>
    </message>
    <message>
        <source>How many times as fast it is shown (default: 1).</source>
        <translation>Wie viel mal so schnell sie gezeigt wird (Vorgabe: 1).</translation>
    </message>
    <message>
        <source>Record what this machine&apos;s agent says, for a bug report.</source>
        <translation>Aufzeichnen, was der Agent dieses Rechners sagt, für einen Fehlerbericht.</translation>
    </message>
    <message>
        <source>An atoll: link, an invite, or the file that holds one.</source>
        <translation>Ein atoll:-Link, eine Einladung oder die Datei, die eine enthält.</translation>
    </message>
</context>
<context>
    <name>CommandText</name>
    <message>
        <source>The command printed more than can be taken.</source>
        <translation>Der Befehl gab mehr aus, als aufgenommen werden kann.</translation>
    </message>
    <message>
        <source>The command ended with status %1 and did not say why.</source>
        <translation>Der Befehl endete mit Status %1 und sagte nicht, warum.</translation>
    </message>
    <message>
        <source>What the command printed cannot be read; it is of another version of Atoll.</source>
        <translation>Die Ausgabe des Befehls ist nicht lesbar; er ist von einer anderen Version von Atoll.</translation>
    </message>
</context>
<context>
    <name>ExitWords</name>
    <message>
        <source>Something killed the trainer.</source>
        <translation>Der Trainer wurde von außen beendet.</translation>
    </message>
    <message>
        <source>The machine ran out of memory.</source>
        <translation>Dem Rechner ging der Speicher aus.</translation>
    </message>
    <message>
        <source>Close other programs, or add memory or swap.</source>
        <translation>Schließen Sie andere Programme, oder geben Sie ihm mehr Speicher oder Swap.</translation>
    </message>
    <message>
        <source>The trainer crashed.</source>
        <translation>Der Trainer ist abgestürzt.</translation>
    </message>
    <message>
        <source>The trainer did nothing any more and was ended.</source>
        <translation>Der Trainer tat nichts mehr und wurde beendet.</translation>
    </message>
    <message>
        <source>A GPU ran out of memory.</source>
        <translation>Einer GPU ging der Speicher aus.</translation>
    </message>
    <message>
        <source>End other programs that use it; nvidia-smi lists them.</source>
        <translation>Beenden Sie andere Programme, die sie nutzen; nvidia-smi führt sie auf.</translation>
    </message>
    <message>
        <source>A GPU is lost.</source>
        <translation>Eine GPU ist ausgefallen.</translation>
    </message>
    <message>
        <source>Restart the machine; the kernel&apos;s log says more (dmesg | grep -i xid).</source>
        <translation>Starten Sie den Rechner neu; mehr sagt das Protokoll des Kernels (dmesg | grep -i xid).</translation>
    </message>
    <message>
        <source>The GPU driver does not work.</source>
        <translation>Der GPU-Treiber arbeitet nicht.</translation>
    </message>
    <message>
        <source>Does nvidia-smi? If not, reinstall the driver or restart the machine.</source>
        <translation>Läuft nvidia-smi? Wenn nicht, installieren Sie den Treiber neu, oder starten Sie den Rechner neu.</translation>
    </message>
    <message>
        <source>The trainer&apos;s numbers were not finite.</source>
        <translation>Die Zahlen des Trainers waren nicht endlich.</translation>
    </message>
    <message>
        <source>If it happens again, check the machine&apos;s memory and GPUs.</source>
        <translation>Geschieht es wieder, prüfen Sie Speicher und GPUs des Rechners.</translation>
    </message>
    <message>
        <source>The hub does not answer.</source>
        <translation>Der Hub antwortet nicht.</translation>
    </message>
    <message>
        <source>If this lasts, look after the network, or ask the operator.</source>
        <translation>Hält es an, sehen Sie nach dem Netz, oder fragen Sie den Betreiber.</translation>
    </message>
    <message>
        <source>The trainer cannot run with what it finds on this machine.</source>
        <translation>Der Trainer kann mit dem, was er auf diesem Rechner findet, nicht laufen.</translation>
    </message>
    <message>
        <source>Put right what is named below, then resume.</source>
        <translation>Beheben Sie, was unten genannt ist, und setzen Sie dann fort.</translation>
    </message>
    <message>
        <source>The trainer ended.</source>
        <translation>Der Trainer endete.</translation>
    </message>
    <message>
        <source>The hub no longer lets this machine take part.</source>
        <translation>Der Hub lässt diesen Rechner nicht mehr teilnehmen.</translation>
    </message>
    <message>
        <source>The operator may have removed it; ask why. With a new invite it joins again, and what it contributed stays.</source>
        <translation>Vielleicht hat der Betreiber ihn entfernt; fragen Sie, warum. Mit einer neuen Einladung tritt er wieder bei, und was er beigetragen hat, bleibt.</translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message>
        <source>unknown</source>
        <translation>unbekannt</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 s</translation>
    </message>
    <message>
        <source>%1 min %2 s</source>
        <translation>%1 min %2 s</translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation>%1 h %2 min</translation>
    </message>
    <message>
        <source>%1 d %2 h</source>
        <translation>%1 d %2 h</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>not a number</source>
        <translation>keine Zahl</translation>
    </message>
</context>
<context>
    <name>Format</name>
    <message>
        <source>unknown</source>
        <translation>unbekannt</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 s</translation>
    </message>
    <message>
        <source>%1 min %2 s</source>
        <translation>%1 min %2 s</translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation>%1 h %2 min</translation>
    </message>
    <message>
        <source>%1 d %2 h</source>
        <translation>%1 d %2 h</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1 tokens/s</source>
        <translation>%1 Token/s</translation>
    </message>
    <message>
        <source>%1 W</source>
        <translation>%1 W</translation>
    </message>
    <message>
        <source>%1 °C</source>
        <translation>%1 °C</translation>
    </message>
    <message>
        <source>now</source>
        <translation>jetzt</translation>
    </message>
    <message>
        <source>%1 s ago</source>
        <translation>vor %1 s</translation>
    </message>
    <message>
        <source>%1 min ago</source>
        <translation>vor %1 min</translation>
    </message>
    <message>
        <source>%1 h ago</source>
        <translation>vor %1 h</translation>
    </message>
    <message>
        <source>%1 d ago</source>
        <translation>vor %1 d</translation>
    </message>
    <message>
        <source>%1 µs</source>
        <translation>%1 µs</translation>
    </message>
</context>
<context>
    <name>InviteAdvice</name>
    <message>
        <source>Copy it again, from the first to the last character.</source>
        <translation>Kopieren Sie sie noch einmal, vom ersten bis zum letzten Zeichen.</translation>
    </message>
    <message>
        <source>This is too long to be an invite.</source>
        <translation>Das ist zu lang für eine Einladung.</translation>
    </message>
    <message>
        <source>An invite is one line that begins with atoll1. - copy that line alone.</source>
        <translation>Eine Einladung ist eine Zeile, die mit atoll1. beginnt - kopieren Sie nur diese Zeile.</translation>
    </message>
    <message>
        <source>This is not an invite.</source>
        <translation>Das ist keine Einladung.</translation>
    </message>
    <message>
        <source>An invite begins with atoll1. - copy it from the first character on.</source>
        <translation>Eine Einladung beginnt mit atoll1. - kopieren Sie sie vom ersten Zeichen an.</translation>
    </message>
    <message>
        <source>The end of the invite is missing.</source>
        <translation>Das Ende der Einladung fehlt.</translation>
    </message>
    <message>
        <source>A part of the invite is missing or was changed.</source>
        <translation>Ein Teil der Einladung fehlt oder wurde verändert.</translation>
    </message>
    <message>
        <source>This invite was not made as it should be.</source>
        <translation>Diese Einladung wurde nicht richtig erstellt.</translation>
    </message>
    <message>
        <source>It is whole, but what it says cannot be right: ask for another one.</source>
        <translation>Sie ist vollständig, aber was sie sagt, kann nicht stimmen: Bitten Sie um eine andere.</translation>
    </message>
    <message>
        <source>This invite has expired.</source>
        <translation>Diese Einladung ist abgelaufen.</translation>
    </message>
    <message>
        <source>Ask for a new one. If it should still be good, this machine&apos;s clock is wrong: it says %1.</source>
        <translation>Bitten Sie um eine neue. Sollte sie noch gelten, geht die Uhr dieses Rechners falsch: Sie zeigt %1.</translation>
    </message>
    <message>
        <source>This invite is for another version of Atoll.</source>
        <translation>Diese Einladung ist für eine andere Version von Atoll.</translation>
    </message>
    <message>
        <source>Install the newest Atoll, or ask for another invite.</source>
        <translation>Installieren Sie das neueste Atoll oder bitten Sie um eine andere Einladung.</translation>
    </message>
    <message>
        <source>This invite cannot be used.</source>
        <translation>Diese Einladung lässt sich nicht benutzen.</translation>
    </message>
    <message>
        <source>Ask the run&apos;s operator for a new invite.</source>
        <translation>Bitten Sie den Betreiber des Laufs um eine neue Einladung.</translation>
    </message>
    <message>
        <source>The hub that answers is not the one in the invite.</source>
        <translation>Der Hub, der antwortet, ist nicht der aus der Einladung.</translation>
    </message>
    <message>
        <source>Do not go on: somebody may pose as the hub. Tell the operator, by a way that you trust, and ask for a new invite.</source>
        <translation>Gehen Sie nicht weiter: Jemand gibt sich vielleicht als der Hub aus. Sagen Sie es dem Betreiber auf einem Weg, dem Sie trauen, und bitten Sie um eine neue Einladung.</translation>
    </message>
    <message>
        <source>The hub serves another run than the invite&apos;s.</source>
        <translation>Der Hub betreibt einen anderen Lauf als den der Einladung.</translation>
    </message>
    <message>
        <source>This invite has been used up.</source>
        <translation>Diese Einladung ist verbraucht.</translation>
    </message>
    <message>
        <source>The hub does not know this invite.</source>
        <translation>Der Hub kennt diese Einladung nicht.</translation>
    </message>
    <message>
        <source>The hub runs another version of Atoll than this machine.</source>
        <translation>Auf dem Hub läuft eine andere Version von Atoll als auf diesem Rechner.</translation>
    </message>
    <message>
        <source>Install the newest Atoll here, or tell the operator to do so.</source>
        <translation>Installieren Sie hier das neueste Atoll, oder bitten Sie den Betreiber darum.</translation>
    </message>
    <message>
        <source>Something answers at the hub&apos;s address, but it is no hub.</source>
        <translation>An der Adresse des Hubs antwortet etwas, aber es ist kein Hub.</translation>
    </message>
    <message>
        <source>A proxy or firewall may stand between, or another program has the port. Tell the operator.</source>
        <translation>Vielleicht steht ein Proxy oder eine Firewall dazwischen, oder ein anderes Programm hat den Port. Sagen Sie es dem Betreiber.</translation>
    </message>
    <message>
        <source>The hub cannot be reached.</source>
        <translation>Der Hub ist nicht erreichbar.</translation>
    </message>
    <message>
        <source>Check this machine&apos;s network. If that works, ask the operator whether the hub runs and its port is open.</source>
        <translation>Sehen Sie nach dem Netz dieses Rechners. Ist es in Ordnung, fragen Sie den Betreiber, ob der Hub läuft und sein Port offen ist.</translation>
    </message>
    <message>
        <source>This machine&apos;s disk is full.</source>
        <translation>Die Platte dieses Rechners ist voll.</translation>
    </message>
    <message>
        <source>Free some space, then try again.</source>
        <translation>Schaffen Sie Platz und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>No agent runs on this machine.</source>
        <translation>Auf diesem Rechner läuft kein Agent.</translation>
    </message>
    <message>
        <source>Start one, then try again.</source>
        <translation>Starten Sie einen und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Stopped, as you wished.</source>
        <translation>Angehalten, wie gewünscht.</translation>
    </message>
    <message>
        <source>It did not work.</source>
        <translation>Das hat nicht geklappt.</translation>
    </message>
    <message>
        <source>The trainer did not begin.</source>
        <translation>Der Trainer hat nicht begonnen.</translation>
    </message>
    <message>
        <source>This was refused.</source>
        <translation>Das wurde abgelehnt.</translation>
    </message>
    <message>
        <source>The hub cannot read this invite.</source>
        <translation>Der Hub kann diese Einladung nicht lesen.</translation>
    </message>
    <message>
        <source>What it said is in the log: on the page Logs, or with atoll logs. Then try again.</source>
        <translation>Was er gesagt hat, steht im Protokoll: auf der Seite Protokolle oder mit atoll logs. Versuchen Sie es dann noch einmal.</translation>
    </message>
</context>
<context>
    <name>IslandText</name>
    <message>
        <source>Resumed within this round (%1), nothing is lost. Later, the %2 steps that this island took in round %3 are lost; everything of earlier rounds stays.</source>
        <translation>In dieser Runde fortgesetzt (%1), geht nichts verloren. Später sind die %2 Schritte dieser Insel in Runde %3 verloren; alles aus früheren Runden bleibt.</translation>
    </message>
    <message>
        <source>Not joined</source>
        <translation>Nicht beigetreten</translation>
    </message>
    <message>
        <source>Unknown</source>
        <translation>Unbekannt</translation>
    </message>
    <message>
        <source>Joining</source>
        <translation>Beitritt</translation>
    </message>
    <message>
        <source>Recovering</source>
        <translation>Stellt wieder her</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Trainiert</translation>
    </message>
    <message>
        <source>Finishing</source>
        <translation>Schließt ab</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Reconnecting</source>
        <translation>Verbindet neu</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation>Verbindet</translation>
    </message>
    <message>
        <source>No agent</source>
        <translation>Kein Agent</translation>
    </message>
    <message>
        <source>Connection lost</source>
        <translation>Verbindung verloren</translation>
    </message>
    <message>
        <source>Refused</source>
        <translation>Abgewiesen</translation>
    </message>
    <message>
        <source>Recording ended</source>
        <translation>Aufzeichnung zu Ende</translation>
    </message>
    <message>
        <source>No agent runs on this machine, so nothing trains here.</source>
        <translation>Auf diesem Rechner läuft kein Agent, also trainiert hier nichts.</translation>
    </message>
    <message>
        <source>No agent runs on that machine, so nothing trains there.</source>
        <translation>Auf jenem Rechner läuft kein Agent, also trainiert dort nichts.</translation>
    </message>
    <message>
        <source>The agent cannot be used.</source>
        <translation>Der Agent lässt sich nicht benutzen.</translation>
    </message>
    <message>
        <source>The recording is over: this is how it ended.</source>
        <translation>Die Aufzeichnung ist zu Ende: So endete sie.</translation>
    </message>
    <message>
        <source>The connection is lost. It is tried again by itself; training goes on without it.</source>
        <translation>Die Verbindung ist verloren. Sie wird von selbst neu versucht; das Training geht ohne sie weiter.</translation>
    </message>
    <message>
        <source>The trainer ended.</source>
        <translation>Der Trainer endete.</translation>
    </message>
    <message>
        <source>The log says more.</source>
        <translation>Das Protokoll sagt mehr.</translation>
    </message>
    <message>
        <source>The hub does not answer.</source>
        <translation>Der Hub antwortet nicht.</translation>
    </message>
    <message>
        <source>It is tried again by itself.</source>
        <translation>Es wird von selbst neu versucht.</translation>
    </message>
    <message>
        <source>Paused until %1.</source>
        <translation>Pausiert bis %1.</translation>
    </message>
    <message>
        <source>Paused until you resume.</source>
        <translation>Pausiert, bis Sie fortsetzen.</translation>
    </message>
    <message>
        <source>The machine is free for other work meanwhile.</source>
        <translation>Der Rechner ist solange für anderes frei.</translation>
    </message>
    <message>
        <source>This island completes the round with the others, then it leaves.</source>
        <translation>Diese Insel vollendet die Runde mit den anderen, dann geht sie.</translation>
    </message>
    <message>
        <source>Resume takes that back.</source>
        <translation>„Fortsetzen“ nimmt das zurück.</translation>
    </message>
    <message>
        <source>Nothing trains here until you resume.</source>
        <translation>Hier trainiert nichts, bis Sie fortsetzen.</translation>
    </message>
    <message>
        <source>about %1</source>
        <translation>etwa %1</translation>
    </message>
    <message>
        <source>its end is not known yet</source>
        <translation>ihr Ende ist noch nicht bekannt</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Lädt</translation>
    </message>
    <message>
        <source>Not answering</source>
        <translation>Antwortet nicht</translation>
    </message>
    <message>
        <source>Updated now</source>
        <translation>Jetzt aktualisiert</translation>
    </message>
    <message>
        <source>Last update %1</source>
        <translation>Zuletzt aktualisiert %1</translation>
    </message>
    <message>
        <source>The agent does not answer; it is asked again every second.</source>
        <translation>Der Agent antwortet nicht; er wird jede Sekunde neu gefragt.</translation>
    </message>
    <message>
        <source>If this lasts, it is suspended or hangs. What is shown is old.</source>
        <translation>Dauert das an, ist er angehalten oder hängt. Was gezeigt wird, ist alt.</translation>
    </message>
    <message>
        <source>&amp;Start the agent</source>
        <translation>Agenten &amp;starten</translation>
    </message>
    <message>
        <source>&amp;Try now</source>
        <translation>Jetzt &amp;versuchen</translation>
    </message>
    <message>
        <source>Play &amp;again</source>
        <translation>Noch einmal &amp;abspielen</translation>
    </message>
    <message>
        <source>Show the &amp;log</source>
        <translation>&amp;Protokoll zeigen</translation>
    </message>
    <message>
        <source>Nothing is lost by a pause now.</source>
        <translation>Eine Pause verliert jetzt nichts.</translation>
    </message>
    <message>
        <source>Nothing of this round is under way here: this island leaves at once.</source>
        <translation>Hier ist nichts von dieser Runde in Arbeit: Diese Insel geht sofort.</translation>
    </message>
    <message>
        <source>This island completes round %1 with the others (%2), then it leaves. Nothing is lost.</source>
        <translation>Diese Insel vollendet Runde %1 mit den anderen (%2), dann geht sie. Nichts geht verloren.</translation>
    </message>
    <message>
        <source>Nothing is lost by stopping now.</source>
        <translation>Anhalten verliert jetzt nichts.</translation>
    </message>
    <message>
        <source>The %1 steps that this island took in round %2 are lost. Finish completes the round first.</source>
        <translation>Die %1 Schritte dieser Insel in Runde %2 sind verloren. „Abschließen“ vollendet die Runde zuerst.</translation>
    </message>
    <message>
        <source>no step yet</source>
        <translation>noch kein Schritt</translation>
    </message>
    <message>
        <source>step %1 of %2</source>
        <translation>Schritt %1 von %2</translation>
    </message>
    <message>
        <source>in round %1</source>
        <translation>in Runde %1</translation>
    </message>
    <message>
        <source>none yet</source>
        <translation>noch keiner</translation>
    </message>
    <message>
        <source>hub reachable since %1</source>
        <translation>Hub erreichbar seit %1</translation>
    </message>
    <message>
        <source>hub reachable</source>
        <translation>Hub erreichbar</translation>
    </message>
    <message>
        <source>hub not reachable since %1</source>
        <translation>Hub nicht erreichbar seit %1</translation>
    </message>
    <message>
        <source>hub not reachable</source>
        <translation>Hub nicht erreichbar</translation>
    </message>
    <message>
        <source>the data</source>
        <translation>die Daten</translation>
    </message>
    <message>
        <source>the model&apos;s state</source>
        <translation>der Modellzustand</translation>
    </message>
    <message>
        <source>fetching %1 failed: %2</source>
        <translation>%1: Holen gescheitert: %2</translation>
    </message>
    <message>
        <source>fetching %1: %2 of %3</source>
        <translation>%1: %2 von %3 geholt</translation>
    </message>
    <message>
        <source>, %1 left</source>
        <translation>, noch %1</translation>
    </message>
    <message>
        <source>Waiting for more islands.</source>
        <translation>Wartet auf weitere Inseln.</translation>
    </message>
    <message>
        <source>%1 of %2 that a round needs are here.</source>
        <translation>%1 von %2, die eine Runde braucht, sind da.</translation>
    </message>
    <message>
        <source>Waiting for the next round to begin.</source>
        <translation>Wartet auf den Beginn der nächsten Runde.</translation>
    </message>
    <message>
        <source>%1 of %2 islands are here.</source>
        <translation>%1 von %2 Inseln sind da.</translation>
    </message>
    <message>
        <source>Synchronising</source>
        <translation>Gleicht ab</translation>
    </message>
    <message>
        <source>Start it here, or in a terminal with: atoll agent</source>
        <translation>Starten Sie ihn hier oder in einem Terminal mit: atoll agent</translation>
    </message>
    <message>
        <source>Start it there with: atoll service install</source>
        <translation>Starten Sie ihn dort mit: atoll service install</translation>
    </message>
    <message>
        <source>It is started again in %1.</source>
        <translation>Er wird in %1 neu gestartet.</translation>
    </message>
    <message>
        <source>matrix products %1</source>
        <translation>Matrixprodukte %1</translation>
    </message>
    <message>
        <source>attention %1</source>
        <translation>Attention %1</translation>
    </message>
    <message>
        <source>elementwise %1</source>
        <translation>elementweise %1</translation>
    </message>
    <message>
        <source>loss %1</source>
        <translation>Loss %1</translation>
    </message>
    <message>
        <source>optimiser %1</source>
        <translation>Optimierer %1</translation>
    </message>
    <message>
        <source>communication %1</source>
        <translation>Kommunikation %1</translation>
    </message>
    <message>
        <source>waiting for data %1</source>
        <translation>Warten auf Daten %1</translation>
    </message>
    <message>
        <source>other %1</source>
        <translation>Übriges %1</translation>
    </message>
    <message>
        <source>Not a member</source>
        <translation>Kein Mitglied</translation>
    </message>
    <message>
        <source>&amp;Join again…</source>
        <translation>Wieder &amp;beitreten…</translation>
    </message>
    <message>
        <source>sends %1, receives %2</source>
        <translation>sendet %1, empfängt %2</translation>
    </message>
    <message>
        <source>It goes on by itself. The machine is free for other work meanwhile.</source>
        <translation>Es geht von selbst weiter. Der Rechner ist solange für anderes frei.</translation>
    </message>
</context>
<context>
    <name>NodeAddress</name>
    <message>
        <source>This machine</source>
        <translation>Dieser Rechner</translation>
    </message>
</context>
<context>
    <name>PauseWords</name>
    <message>
        <source>Training is paused outside the hours that are set.</source>
        <translation>Das Training pausiert außerhalb der eingestellten Stunden.</translation>
    </message>
    <message>
        <source>Training is paused while other programs compute.</source>
        <translation>Das Training pausiert, während andere Programme rechnen.</translation>
    </message>
    <message>
        <source>Training is paused while other programs use a GPU.</source>
        <translation>Das Training pausiert, während andere Programme eine GPU nutzen.</translation>
    </message>
    <message>
        <source>Training is paused while somebody uses the machine.</source>
        <translation>Das Training pausiert, während jemand den Rechner benutzt.</translation>
    </message>
    <message>
        <source>Training is paused while the machine runs on its battery.</source>
        <translation>Das Training pausiert, während der Rechner auf Akku läuft.</translation>
    </message>
    <message>
        <source>Training is paused on a metered network.</source>
        <translation>Das Training pausiert in einem getakteten Netz.</translation>
    </message>
    <message>
        <source>Training is paused until a GPU is cooler.</source>
        <translation>Das Training pausiert, bis eine GPU kühler ist.</translation>
    </message>
    <message>
        <source>Training is paused until the processor is cooler.</source>
        <translation>Das Training pausiert, bis der Prozessor kühler ist.</translation>
    </message>
    <message>
        <source>Training is paused until less power is drawn.</source>
        <translation>Das Training pausiert, bis weniger Leistung gezogen wird.</translation>
    </message>
</context>
<context>
    <name>Readout</name>
    <message>
        <source>%1 (%2 to %3)</source>
        <translation>%1 (%2 bis %3)</translation>
    </message>
</context>
<context>
    <name>RecorderText</name>
    <message>
        <source>The recording cannot be written to %1: %2. Choose another place.</source>
        <translation>Die Aufzeichnung lässt sich nicht nach %1 schreiben: %2. Wählen Sie einen anderen Ort.</translation>
    </message>
    <message>
        <source>The recording has its full size of 2 GiB, and ends here.</source>
        <translation>Die Aufzeichnung hat ihre volle Größe von 2 GiB und endet hier.</translation>
    </message>
    <message>
        <source>The recording ends here, for %1 cannot be written: %2.</source>
        <translation>Die Aufzeichnung endet hier, denn %1 lässt sich nicht schreiben: %2.</translation>
    </message>
    <message>
        <source>the disk is full</source>
        <translation>der Datenträger ist voll</translation>
    </message>
</context>
<context>
    <name>Recording</name>
    <message>
        <source>%1 is no recording of Atoll&apos;s.</source>
        <translation>%1 ist keine Aufzeichnung von Atoll.</translation>
    </message>
    <message>
        <source>%1 was recorded by another version of Atoll; open it with that one.</source>
        <translation>%1 wurde mit einer anderen Version von Atoll aufgezeichnet; öffnen Sie es mit jener.</translation>
    </message>
    <message>
        <source>%1 cannot be read: %2</source>
        <translation>%1 lässt sich nicht lesen: %2</translation>
    </message>
</context>
<context>
    <name>Recordings</name>
    <message>
        <source>%1 is not whole: it breaks off within a line, and is shown up to there.</source>
        <translation>%1 ist nicht vollständig: Die Datei bricht in einer Zeile ab und wird bis dahin gezeigt.</translation>
    </message>
</context>
<context>
    <name>SettingText</name>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>What others see. Empty: the host&apos;s name.</source>
        <translation>Was andere sehen. Leer: der Name des Rechners.</translation>
    </message>
    <message>
        <source>Address and port</source>
        <translation>Adresse und Port</translation>
    </message>
    <message>
        <source>Where the other islands connect to, HOST:PORT. Port 0: any free one.</source>
        <translation>Womit sich die anderen Inseln verbinden, HOST:PORT. Port 0: irgendein freier.</translation>
    </message>
    <message>
        <source>Host for others</source>
        <translation>Host für andere</translation>
    </message>
    <message>
        <source>What the other islands dial. Empty: the address that the hub sees.</source>
        <translation>Was die anderen Inseln anwählen. Leer: die Adresse, die der Hub sieht.</translation>
    </message>
    <message>
        <source>Region</source>
        <translation>Region</translation>
    </message>
    <message>
        <source>A town or country, for the others to see. Empty: not said.</source>
        <translation>Ein Ort oder Land, das die anderen sehen. Leer: keine Angabe.</translation>
    </message>
    <message>
        <source>Compute threads</source>
        <translation>Rechen-Threads</translation>
    </message>
    <message>
        <source>0: all cores.</source>
        <translation>0: alle Kerne.</translation>
    </message>
    <message>
        <source>Shards of the model</source>
        <translation>Teile des Modells</translation>
    </message>
    <message>
        <source>On this machine. 0: one a GPU, or one a core.</source>
        <translation>Auf diesem Rechner. 0: einer je GPU, oder einer je Kern.</translation>
    </message>
    <message>
        <source>Sequences at once</source>
        <translation>Sequenzen auf einmal</translation>
    </message>
    <message>
        <source>That each shard computes. 0: as many as the memory allows.</source>
        <translation>Die jeder Teil rechnet. 0: so viele, wie in den Speicher passen.</translation>
    </message>
    <message>
        <source>Computes on</source>
        <translation>Rechnet auf</translation>
    </message>
    <message>
        <source>auto: the GPUs, where there are any and the model fits on them; else the processor.</source>
        <translation>auto: auf den GPUs, wenn es welche gibt und das Modell darauf passt; sonst auf dem Prozessor.</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>Genauigkeit</translation>
    </message>
    <message>
        <source>In which numbers the model is computed. auto: bf16 on GPUs, fp32 on the processor.</source>
        <translation>In welchen Zahlen das Modell gerechnet wird. auto: bf16 auf GPUs, fp32 auf dem Prozessor.</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPUs</translation>
    </message>
    <message>
        <source>That the trainer may use: all, none, or for instance 0-3,6.</source>
        <translation>Die der Trainer benutzen darf: all (alle), none (keine) oder etwa 0-3,6.</translation>
    </message>
    <message>
        <source>Upload limit</source>
        <translation>Upload-Grenze</translation>
    </message>
    <message>
        <source>Watts that each GPU may draw while training; the agent needs root for it. 0: as the driver has it.</source>
        <translation>Watt, die jede GPU beim Training aufnehmen darf; der Agent braucht dafür root. 0: wie im Treiber eingestellt.</translation>
    </message>
    <message>
        <source>GPU temperature</source>
        <translation>GPU-Temperatur</translation>
    </message>
    <message>
        <source>Degrees Celsius above which training pauses. 0: no limit.</source>
        <translation>Grad Celsius, über denen das Training pausiert. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>Object store</source>
        <translation>Objektspeicher</translation>
    </message>
    <message>
        <source>Its address, https://HOST:PORT. Empty: Amazon&apos;s of the region.</source>
        <translation>Seine Adresse, https://HOST:PORT. Leer: der von Amazon in der Region.</translation>
    </message>
    <message>
        <source>Store&apos;s region</source>
        <translation>Region des Speichers</translation>
    </message>
    <message>
        <source>Empty: us-east-1.</source>
        <translation>Leer: us-east-1.</translation>
    </message>
    <message>
        <source>Bucket</source>
        <translation>Bucket</translation>
    </message>
    <message>
        <source>To which this machine may write states of its runs. Empty: none.</source>
        <translation>In den dieser Rechner Zustände seiner Läufe schreiben darf. Leer: keiner.</translation>
    </message>
    <message>
        <source>Store&apos;s key</source>
        <translation>Schlüssel des Speichers</translation>
    </message>
    <message>
        <source>The file with the access key, which its owner alone may read.</source>
        <translation>Die Datei mit dem Zugangsschlüssel, die nur ihr Besitzer lesen darf.</translation>
    </message>
    <message>
        <source>Hours</source>
        <translation>Tageszeiten</translation>
    </message>
    <message>
        <source>When to train, in the machine&apos;s local time.</source>
        <translation>Wann trainiert wird, in der Ortszeit des Rechners.</translation>
    </message>
    <message>
        <source>Time to stop</source>
        <translation>Zeit zum Anhalten</translation>
    </message>
    <message>
        <source>That a trainer which is ended may take.</source>
        <translation>Die ein Trainer brauchen darf, der beendet wird.</translation>
    </message>
    <message>
        <source>Size of the history</source>
        <translation>Größe des Verlaufs</translation>
    </message>
    <message>
        <source>What it may take on the disk.</source>
        <translation>Was er auf der Platte belegen darf.</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>What is logged.</source>
        <translation>Was festgehalten wird.</translation>
    </message>
    <message>
        <source>Size of the logs</source>
        <translation>Größe der Protokolle</translation>
    </message>
    <message>
        <source>What they may take on the disk.</source>
        <translation>Was sie auf der Platte belegen dürfen.</translation>
    </message>
    <message>
        <source>Days to keep</source>
        <translation>Tage aufbewahren</translation>
    </message>
    <message>
        <source>Of each the newest state stays on the disk. 0: those of the run alone.</source>
        <translation>Von jedem bleibt der neueste Zustand auf der Platte. 0: nur die des Laufs.</translation>
    </message>
    <message>
        <source>Rounds to keep</source>
        <translation>Runden aufbewahren</translation>
    </message>
    <message>
        <source>The states after these rounds stay on the disk, apart by commas.</source>
        <translation>Die Zustände nach diesen Runden bleiben auf der Platte, durch Kommas getrennt.</translation>
    </message>
    <message>
        <source>Checkpoints</source>
        <translation>Checkpoints</translation>
    </message>
    <message>
        <source>Island</source>
        <translation>Insel</translation>
    </message>
    <message>
        <source>Limits</source>
        <translation>Grenzen</translation>
    </message>
    <message>
        <source>Schedule</source>
        <translation>Zeitplan</translation>
    </message>
    <message>
        <source>Agent</source>
        <translation>Agent</translation>
    </message>
    <message>
        <source>History</source>
        <translation>Verlauf</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>Protokolle</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Vorgabe</translation>
    </message>
    <message>
        <source>Set here</source>
        <translation>Hier gesetzt</translation>
    </message>
    <message>
        <source>As it was joined</source>
        <translation>Wie beim Beitritt</translation>
    </message>
    <message>
        <source>From the agent&apos;s command line</source>
        <translation>Von der Befehlszeile des Agenten</translation>
    </message>
    <message>
        <source>From the environment: %1</source>
        <translation>Aus der Umgebung: %1</translation>
    </message>
    <message>
        <source>From %1</source>
        <translation>Aus %1</translation>
    </message>
    <message>
        <source>Power per GPU</source>
        <translation>Leistung je GPU</translation>
    </message>
    <message>
        <source>Save work every</source>
        <translation>Arbeit sichern alle</translation>
    </message>
    <message>
        <source>A crash costs what was trained since. 0s: only a pause saves it.</source>
        <translation>Ein Absturz kostet, was seither trainiert wurde. 0s: Nur eine Pause sichert sie.</translation>
    </message>
    <message>
        <source>Data on the disk</source>
        <translation>Daten auf der Platte</translation>
    </message>
    <message>
        <source>What a run&apos;s data may take. It is fetched when it is needed.</source>
        <translation>Was die Daten eines Laufs belegen dürfen. Sie werden geholt, wenn sie gebraucht werden.</translation>
    </message>
    <message>
        <source>Named in models</source>
        <translation>In Modellen genannt</translation>
    </message>
    <message>
        <source>Whether the cards of exported models name this island. none: it is counted without a name.</source>
        <translation>Ob die Karten exportierter Modelle diese Insel nennen. none: sie wird ohne Namen gezählt.</translation>
    </message>
    <message>
        <source>Mirrors of data</source>
        <translation>Spiegel der Daten</translation>
    </message>
    <message>
        <source>That a run may name. https: on the internet. web: private networks too. all: and this machine&apos;s paths.</source>
        <translation>Die ein Lauf nennen darf. https: im Internet. web: auch private Netze. all: auch Pfade dieser Maschine.</translation>
    </message>
    <message>
        <source>Trusted authorities</source>
        <translation>Vertraute Stellen</translation>
    </message>
    <message>
        <source>Certificates for stores and mirrors, a PEM file. Empty: the system&apos;s.</source>
        <translation>Zertifikate für Speicher und Spiegel, eine PEM-Datei. Leer: die des Systems.</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>Andere Programme</translation>
    </message>
    <message>
        <source>Percent of one processor that they may keep busy before training pauses. 0: whatever they do.</source>
        <translation>Prozent eines Prozessors, die sie auslasten dürfen, bevor das Training pausiert. 0: egal, was sie tun.</translation>
    </message>
    <message>
        <source>Somebody is there</source>
        <translation>Jemand ist da</translation>
    </message>
    <message>
        <source>Training waits until nobody has used this machine for so long. 0s: it does not.</source>
        <translation>Das Training wartet, bis so lange niemand diesen Rechner benutzt hat. 0s: Es wartet nicht.</translation>
    </message>
    <message>
        <source>On battery</source>
        <translation>Auf Akku</translation>
    </message>
    <message>
        <source>What is done while the machine runs on its battery.</source>
        <translation>Was geschieht, während der Rechner auf Akku läuft.</translation>
    </message>
    <message>
        <source>Metered network</source>
        <translation>Getaktetes Netz</translation>
    </message>
    <message>
        <source>What is done while NetworkManager says that the network is metered.</source>
        <translation>Was geschieht, während NetworkManager das Netz getaktet nennt.</translation>
    </message>
    <message>
        <source>What the island may send in all. Changes are in force at once.</source>
        <translation>Was die Insel insgesamt senden darf. Änderungen gelten sofort.</translation>
    </message>
    <message>
        <source>Upload by hours</source>
        <translation>Upload nach Uhrzeit</translation>
    </message>
    <message>
        <source>Other limits at given hours, in the machine&apos;s local time, for instance 08:00-18:00 20 Mbit/s, 23:00-06:00 none.</source>
        <translation>Andere Grenzen zu bestimmten Uhrzeiten, in der Ortszeit des Rechners, zum Beispiel 08:00-18:00 20 Mbit/s, 23:00-06:00 none.</translation>
    </message>
    <message>
        <source>Download limit</source>
        <translation>Download-Grenze</translation>
    </message>
    <message>
        <source>What the island may receive in all. Changes are in force at once.</source>
        <translation>Was die Insel insgesamt empfangen darf. Änderungen gelten sofort.</translation>
    </message>
    <message>
        <source>Download by hours</source>
        <translation>Download nach Uhrzeit</translation>
    </message>
    <message>
        <source>Other limits at given hours, as for the upload.</source>
        <translation>Andere Grenzen zu bestimmten Uhrzeiten, wie beim Upload.</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>keine Grenze</translation>
    </message>
    <message>
        <source>Now: %1, until %2</source>
        <translation>Jetzt: %1, bis %2</translation>
    </message>
    <message>
        <source>Processor&apos;s temperature</source>
        <translation>Temperatur Prozessor</translation>
    </message>
    <message>
        <source>Power in all</source>
        <translation>Leistung insgesamt</translation>
    </message>
    <message>
        <source>Watts that processors and GPUs may draw before training pauses. 0: no limit.</source>
        <translation>Watt, die Prozessoren und GPUs ziehen dürfen, bevor das Training pausiert. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>Others on a GPU</source>
        <translation>Andere auf GPUs</translation>
    </message>
    <message>
        <source>Memory of a GPU that other programs may hold before training pauses. 0: whatever they do.</source>
        <translation>Speicher einer GPU, den andere Programme belegen dürfen, bevor das Training pausiert. 0: egal, was sie tun.</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>Regeln</translation>
    </message>
</context>
<context>
    <name>atl::AddNodeDialog</name>
    <message>
        <source>Add a machine</source>
        <translation>Rechner hinzufügen</translation>
    </message>
    <message>
        <source>Look at an island on another machine, through ssh. Nothing has to listen there; atoll has to be on that machine&apos;s PATH, and ssh has to let you in without a password (with a key).</source>
        <translation>Eine Insel auf einem anderen Rechner ansehen, durch ssh. Dort muss nichts lauschen; atoll muss im PATH jenes Rechners stehen, und ssh muss Sie ohne Kennwort einlassen (mit einem Schlüssel).</translation>
    </message>
    <message>
        <source>&amp;Machine:</source>
        <translation>&amp;Rechner:</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>Rechner</translation>
    </message>
    <message>
        <source>&amp;Try it</source>
        <translation>&amp;Ausprobieren</translation>
    </message>
    <message>
        <source>&amp;Add</source>
        <translation>&amp;Hinzufügen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>This names no machine.</source>
        <translation>Das bezeichnet keinen Rechner.</translation>
    </message>
    <message>
        <source>Write ssh://node, ssh://user@node or ssh://user@node:22.</source>
        <translation>Schreiben Sie ssh://node, ssh://user@node oder ssh://user@node:22.</translation>
    </message>
    <message>
        <source>It answers.</source>
        <translation>Er antwortet.</translation>
    </message>
    <message>
        <source>The machine answers, but no agent runs there.</source>
        <translation>Der Rechner antwortet, aber dort läuft kein Agent.</translation>
    </message>
    <message>
        <source>Start one there with atoll agent, or with atoll service install.</source>
        <translation>Starten Sie dort einen mit atoll agent oder mit atoll service install.</translation>
    </message>
    <message>
        <source>The machine cannot be reached.</source>
        <translation>Der Rechner ist nicht erreichbar.</translation>
    </message>
    <message>
        <source>Connecting…</source>
        <translation>Verbinden …</translation>
    </message>
</context>
<context>
    <name>atl::AgentLink</name>
    <message>
        <source>connecting again</source>
        <translation>es wird neu verbunden</translation>
    </message>
    <message>
        <source>The Atoll that runs there speaks another version of the control protocol (this one speaks %1). Install the same version of Atoll on both sides, restart the agent, and connect again.</source>
        <translation>Das Atoll dort spricht eine andere Version des Steuerprotokolls (dieses spricht %1). Installieren Sie auf beiden Seiten dieselbe Version von Atoll, starten Sie den Agenten neu und verbinden Sie noch einmal.</translation>
    </message>
    <message>
        <source>what answers there does not speak as an agent does</source>
        <translation>was dort antwortet, spricht nicht wie ein Agent</translation>
    </message>
    <message>
        <source>there is no connection to the agent yet</source>
        <translation>noch gibt es keine Verbindung zum Agenten</translation>
    </message>
    <message>
        <source>no answer to %1 within %2 s; it is busy, suspended or hangs</source>
        <translation>keine Antwort auf %1 binnen %2 s; er ist beschäftigt, angehalten oder hängt</translation>
    </message>
    <message>
        <source>The agent is there but does not answer.</source>
        <translation>Der Agent ist da, antwortet aber nicht.</translation>
    </message>
    <message>
        <source>What answers there does not speak Atoll&apos;s control protocol: %1</source>
        <translation>Was dort antwortet, spricht nicht Atolls Steuerprotokoll: %1</translation>
    </message>
    <message>
        <source>The agent has ended.</source>
        <translation>Der Agent ist beendet.</translation>
    </message>
</context>
<context>
    <name>atl::AlertsList</name>
    <message>
        <source>Alerts</source>
        <translation>Meldungen</translation>
    </message>
    <message>
        <source>Nothing is amiss.</source>
        <translation>Alles in Ordnung.</translation>
    </message>
    <message>
        <source>No alerts.</source>
        <translation>Keine Meldungen.</translation>
    </message>
</context>
<context>
    <name>atl::BarPlot</name>
    <message>
        <source>Bars. Shift with the arrows reads values.</source>
        <translation>Balken. Umschalt mit den Pfeiltasten liest Werte ab.</translation>
    </message>
</context>
<context>
    <name>atl::CheckModel</name>
    <message>
        <source>The connection to the agent was lost meanwhile. Check again.</source>
        <translation>Die Verbindung zum Agenten ging unterdessen verloren. Prüfen Sie noch einmal.</translation>
    </message>
    <message>
        <source>Verdict</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Befund</translation>
    </message>
    <message>
        <source>What to do</source>
        <translation>Was zu tun ist</translation>
    </message>
    <message>
        <source>pass</source>
        <translation>OK</translation>
    </message>
    <message>
        <source>warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>fail</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>skipped</source>
        <translation>entfällt</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::CheckPage</name>
    <message>
        <source>A check is under way</source>
        <translation>Eine Prüfung läuft</translation>
    </message>
    <message>
        <source>Node check</source>
        <translation>Prüfung des Rechners</translation>
    </message>
    <message>
        <source>&amp;Quick check</source>
        <translation>&amp;Schnelle Prüfung</translation>
    </message>
    <message>
        <source>Seconds: limits, disk, memory, GPUs, and when joined the way to the hub</source>
        <translation>Sekunden: Grenzen, Platte, Speicher, GPUs und, wenn beigetreten, der Weg zum Hub</translation>
    </message>
    <message>
        <source>Full chec&amp;k</source>
        <translation>&amp;Volle Prüfung</translation>
    </message>
    <message>
        <source>Minutes: also measures GPUs and links; training is slower meanwhile</source>
        <translation>Minuten: misst auch GPUs und Verbindungen; das Training ist so lange langsamer</translation>
    </message>
    <message>
        <source>What this machine can do, and what stands in its way.</source>
        <translation>Was dieser Rechner kann und was ihm im Weg steht.</translation>
    </message>
    <message>
        <source>No agent answers, so this machine cannot be checked from here.</source>
        <translation>Kein Agent antwortet, daher kann dieser Rechner von hier aus nicht geprüft werden.</translation>
    </message>
    <message>
        <source>Checking: rows appear as they come.</source>
        <translation>Es wird geprüft: Zeilen erscheinen, sobald sie da sind.</translation>
    </message>
    <message>
        <source>The check could not be run to its end.</source>
        <translation>Die Prüfung kam nicht an ihr Ende.</translation>
    </message>
    <message>
        <source>No check was made since this window was opened.</source>
        <translation>Seit dieses Fenster offen ist, wurde nicht geprüft.</translation>
    </message>
    <message>
        <source>A quick check takes seconds. A full one also measures GPUs and links, which takes minutes.</source>
        <translation>Eine schnelle Prüfung dauert Sekunden. Eine volle misst auch GPUs und Verbindungen, was Minuten dauert.</translation>
    </message>
    <message numerus="yes">
        <source>%n row(s) failed.</source>
        <translation>
            <numerusform>Eine Zeile ist fehlgeschlagen.</numerusform>
            <numerusform>%n Zeilen sind fehlgeschlagen.</numerusform>
        </translation>
    </message>
    <message>
        <source>This machine cannot join as it is. Choose a row to copy what helps.</source>
        <translation>So kann dieser Rechner nicht beitreten. Wählen Sie eine Zeile, um zu kopieren, was hilft.</translation>
    </message>
    <message numerus="yes">
        <source>%n warning(s).</source>
        <translation>
            <numerusform>Eine Warnung.</numerusform>
            <numerusform>%n Warnungen.</numerusform>
        </translation>
    </message>
    <message>
        <source>This machine can train; it would do better with what the rows propose.</source>
        <translation>Dieser Rechner kann trainieren; mit dem, was die Zeilen vorschlagen, ginge es besser.</translation>
    </message>
    <message>
        <source>This machine can train: nothing is amiss.</source>
        <translation>Dieser Rechner kann trainieren: alles in Ordnung.</translation>
    </message>
    <message>
        <source>Training may be slow or fail until this is put right. Choose a row to copy what helps.</source>
        <translation>Das Training kann langsam sein oder scheitern, bis das behoben ist. Wählen Sie eine Zeile, um zu kopieren, was hilft.</translation>
    </message>
    <message>
        <source>&amp;Start the agent</source>
        <translation>Agenten &amp;starten</translation>
    </message>
    <message>
        <source>Start the agent of this machine</source>
        <translation>Den Agenten dieses Rechners starten</translation>
    </message>
    <message>
        <source>Last check: %1, for no run</source>
        <translation>Letzte Prüfung: %1, für keinen Lauf</translation>
    </message>
    <message>
        <source>Last check: %1, for the run “%2”</source>
        <translation>Letzte Prüfung: %1, für den Lauf „%2“</translation>
    </message>
    <message>
        <source>No agent runs on this machine, so it cannot be checked from here.</source>
        <translation>Auf diesem Rechner läuft kein Agent, also kann er von hier aus nicht geprüft werden.</translation>
    </message>
    <message>
        <source>The agent measures. Starting it trains nothing before you joined a run.</source>
        <translation>Der Agent misst. Gestartet trainiert er nichts, bevor Sie einem Lauf beigetreten sind.</translation>
    </message>
    <message>
        <source>This result is old: it was not made for what this machine does now.</source>
        <translation>Dieses Ergebnis ist alt: Es gilt nicht für das, was dieser Rechner jetzt tut.</translation>
    </message>
    <message>
        <source>Check again to see whether this machine does for its run.</source>
        <translation>Prüfen Sie erneut, ob dieser Rechner für seinen Lauf taugt.</translation>
    </message>
    <message>
        <source>Check again to see what this machine can do.</source>
        <translation>Prüfen Sie erneut, was dieser Rechner kann.</translation>
    </message>
</context>
<context>
    <name>atl::CheckRowsView</name>
    <message>
        <source>%1. What to do: %2</source>
        <translation>%1. Was zu tun ist: %2</translation>
    </message>
    <message>
        <source>Named %1 in scripts</source>
        <translation>Heißt in Skripten %1</translation>
    </message>
</context>
<context>
    <name>atl::CheckTable</name>
    <message>
        <source>Rows of the node check</source>
        <translation>Zeilen der Prüfung</translation>
    </message>
    <message>
        <source>&amp;Copy what to do</source>
        <translation>Abhilfe &amp;kopieren</translation>
    </message>
    <message>
        <source>Copy what to do about the chosen row</source>
        <translation>Abhilfe für die gewählte Zeile kopieren</translation>
    </message>
    <message>
        <source>Copy a&amp;ll</source>
        <translation>A&amp;lles kopieren</translation>
    </message>
    <message>
        <source>Copy what to do about every row</source>
        <translation>Abhilfe zu jeder Zeile kopieren</translation>
    </message>
</context>
<context>
    <name>atl::CheckTopics</name>
    <message>
        <source>Machine</source>
        <translation>Rechner</translation>
    </message>
    <message>
        <source>Memory, disk and limits: is there what a run needs?</source>
        <translation>Speicher, Platte und Grenzen: Ist da, was ein Lauf braucht?</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPUs</translation>
    </message>
    <message>
        <source>Are they well, and as fast as others of their kind?</source>
        <translation>Sind sie in Ordnung und so schnell wie andere ihrer Art?</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>The way to the hub and to the other islands.</source>
        <translation>Der Weg zum Hub und zu den anderen Inseln.</translation>
    </message>
    <message>
        <source>full check</source>
        <translation>volle Prüfung</translation>
    </message>
</context>
<context>
    <name>atl::CheckpointsModel</name>
    <message>
        <source>There is no checkpoint yet.</source>
        <translation>Es gibt noch keinen Sicherungspunkt.</translation>
    </message>
    <message>
        <source>Read through: whole, and equal to its SHA-256.</source>
        <translation>Ganz gelesen: vollständig und gleich seinem SHA-256.</translation>
    </message>
    <message>
        <source>The model after round %1 is in %2.</source>
        <translation>Das Modell nach Runde %1 liegt in %2.</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>unbekannt</translation>
    </message>
    <message>
        <source>After round</source>
        <translation>Nach Runde</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Saved</source>
        <translation>Gesichert</translation>
    </message>
    <message>
        <source>SHA-256</source>
        <translation>SHA-256</translation>
    </message>
    <message>
        <source>Verified</source>
        <translation>Geprüft</translation>
    </message>
    <message>
        <source>Where</source>
        <translation>Wo</translation>
    </message>
    <message>
        <source>not yet</source>
        <translation>noch nicht</translation>
    </message>
    <message>
        <source>whole</source>
        <translation>vollständig</translation>
    </message>
    <message>
        <source>damaged</source>
        <translation>beschädigt</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::CheckpointsPage</name>
    <message>
        <source>Working</source>
        <translation>Arbeitet</translation>
    </message>
    <message>
        <source>On this disk</source>
        <translation>Auf dieser Platte</translation>
    </message>
    <message>
        <source>Checkpoints</source>
        <translation>Sicherungspunkte</translation>
    </message>
    <message>
        <source>No checkpoint yet</source>
        <translation>Noch kein Sicherungspunkt</translation>
    </message>
    <message>
        <source>The first one is written when the first round is committed.</source>
        <translation>Der erste wird geschrieben, wenn die erste Runde gilt.</translation>
    </message>
    <message>
        <source>&amp;Verify</source>
        <translation>Prü&amp;fen</translation>
    </message>
    <message>
        <source>Read all of it and compare it with its SHA-256; training goes on</source>
        <translation>Alles lesen und mit seinem SHA-256 vergleichen; das Training geht weiter</translation>
    </message>
    <message>
        <source>Write the model as it is now as a HuggingFace directory</source>
        <translation>Das Modell, wie es jetzt ist, als HuggingFace-Ordner schreiben</translation>
    </message>
    <message>
        <source>&amp;Copy hash</source>
        <translation>Prüfsumme &amp;kopieren</translation>
    </message>
    <message>
        <source>Copy the SHA-256 of the chosen checkpoint</source>
        <translation>SHA-256 des gewählten Sicherungspunkts kopieren</translation>
    </message>
    <message>
        <source>At work; large models take minutes.</source>
        <translation>In Arbeit; große Modelle brauchen Minuten.</translation>
    </message>
    <message>
        <source>A new directory for the model</source>
        <translation>Ein neuer Ordner für das Modell</translation>
    </message>
    <message>
        <source>Directory:</source>
        <translation>Ordner:</translation>
    </message>
    <message>
        <source>Export model</source>
        <translation>Modell exportieren</translation>
    </message>
    <message>
        <source>Directory on %1, not there yet:</source>
        <translation>Ordner auf %1, noch nicht vorhanden:</translation>
    </message>
    <message>
        <source>&amp;Export model…</source>
        <translation>Modell &amp;exportieren …</translation>
    </message>
    <message>
        <source>Chosen checkpoint</source>
        <translation>Gewählter Sicherungspunkt</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>Parameter</translation>
    </message>
    <message>
        <source>SHA-256 of the state</source>
        <translation>SHA-256 des Zustands</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
</context>
<context>
    <name>atl::CommandRun</name>
    <message>
        <source>Cannot run %1: %2. Install Atoll&apos;s command line beside this program.</source>
        <translation>%1 lässt sich nicht ausführen: %2. Installieren Sie Atolls Befehlszeile neben diesem Programm.</translation>
    </message>
    <message>
        <source>The other machine&apos;s Atoll is of another version; install the same there.</source>
        <translation>Das Atoll des anderen Rechners hat eine andere Version; installieren Sie dort dieselbe.</translation>
    </message>
    <message>
        <source>This is a recording: there is no machine on which this could be done.</source>
        <translation>Dies ist eine Aufzeichnung: Es gibt keinen Rechner, auf dem das ginge.</translation>
    </message>
</context>
<context>
    <name>atl::ConsentPage</name>
    <message>
        <source>Consent</source>
        <translation>Einwilligung</translation>
    </message>
    <message>
        <source>Nothing trains before you agree.</source>
        <translation>Nichts trainiert, bevor Sie einwilligen.</translation>
    </message>
    <message>
        <source>What runs here</source>
        <translation>Was hier läuft</translation>
    </message>
    <message>
        <source>What leaves this machine</source>
        <translation>Was diesen Rechner verlässt</translation>
    </message>
    <message>
        <source>How it ends</source>
        <translation>Wie es endet</translation>
    </message>
    <message>
        <source>After a restart of the machine</source>
        <translation>Nach einem Neustart des Rechners</translation>
    </message>
    <message>
        <source>&amp;Start at boot, as a service of this user (systemd)</source>
        <translation>Beim Hochfahren &amp;starten, als Dienst dieses Benutzers (systemd)</translation>
    </message>
    <message>
        <source>Start at boot</source>
        <translation>Beim Hochfahren starten</translation>
    </message>
    <message>
        <source>Train also while &amp;nobody is logged in</source>
        <translation>Auch trainieren, wenn &amp;niemand angemeldet ist</translation>
    </message>
    <message>
        <source>Train also while nobody is logged in</source>
        <translation>Auch trainieren, wenn niemand angemeldet ist</translation>
    </message>
    <message>
        <source>Switches lingering on for this user; removing the service switches it off again</source>
        <translation>Schaltet „lingering“ für diesen Benutzer ein; das Entfernen des Dienstes schaltet es wieder aus</translation>
    </message>
    <message>
        <source>the run</source>
        <translation>den Lauf</translation>
    </message>
    <message>
        <source>Atoll&apos;s own trainer, as your user, on the GPUs or the processor that you chose. The run brings data and numbers, never programs.</source>
        <translation>Atolls eigener Trainer, unter Ihrem Benutzer, auf den GPUs oder dem Prozessor, die Sie gewählt haben. Der Lauf bringt Daten und Zahlen, nie Programme.</translation>
    </message>
    <message>
        <source>What this machine&apos;s copy of the model learned, as numbers, goes to the run&apos;s other islands, and they may connect to this one. They and the hub see its address, its name, its speed and the result of the node check. Your files stay here.</source>
        <translation>Was die Kopie des Modells auf diesem Rechner gelernt hat, geht als Zahlen an die anderen Inseln des Laufs, und sie dürfen sich mit dieser verbinden. Sie und der Hub sehen seine Adresse, seinen Namen, sein Tempo und das Ergebnis der Prüfung. Ihre Dateien bleiben hier.</translation>
    </message>
    <message>
        <source>Pause, finish or leave at any time, in the window or with atoll on a terminal. Closing the window ends nothing.</source>
        <translation>Pausieren, abschließen oder verlassen Sie den Lauf jederzeit, im Fenster oder mit atoll im Terminal. Das Schließen des Fensters beendet nichts.</translation>
    </message>
    <message>
        <source>I &amp;agree that this machine computes for %1</source>
        <translation>Ich &amp;willige ein, dass dieser Rechner für %1 rechnet</translation>
    </message>
    <message>
        <source>I agree that this machine computes for %1</source>
        <translation>Ich willige ein, dass dieser Rechner für %1 rechnet</translation>
    </message>
    <message>
        <source>the run “%1”</source>
        <translation>den Lauf „%1“</translation>
    </message>
    <message>
        <source>Atoll&apos;s own trainer, as your user, on the processor. The run brings data and numbers, never programs.</source>
        <translation>Atolls eigener Trainer, unter Ihrem Benutzer, auf dem Prozessor. Der Lauf bringt Daten und Zahlen, nie Programme.</translation>
    </message>
    <message>
        <source>The run, and what it costs</source>
        <translation>Der Lauf, und was er kostet</translation>
    </message>
    <message>
        <source>Run:</source>
        <translation>Lauf:</translation>
    </message>
    <message>
        <source>Operator:</source>
        <translation>Betreiber:</translation>
    </message>
    <message>
        <source>Model:</source>
        <translation>Modell:</translation>
    </message>
    <message>
        <source>Each round:</source>
        <translation>Je Runde:</translation>
    </message>
    <message>
        <source>Disk:</source>
        <translation>Platte:</translation>
    </message>
    <message>
        <source>Memory:</source>
        <translation>Speicher:</translation>
    </message>
    <message>
        <source>The hub does not say.</source>
        <translation>Der Hub sagt es nicht.</translation>
    </message>
    <message>
        <source>%1, %2 parameters</source>
        <translation>%1, %2 Parameter</translation>
    </message>
    <message>
        <source>up to %1 sent, and as much received; %2 to join</source>
        <translation>bis zu %1 gesendet und ebenso viel empfangen; %2 beim Beitritt</translation>
    </message>
    <message>
        <source>up to %1</source>
        <translation>bis zu %1</translation>
    </message>
    <message>
        <source>%1 where the processor computes; where GPUs do, %2 and %3 of a card</source>
        <translation>%1, wo der Prozessor rechnet; wo GPUs rechnen, %2 und %3 einer Karte</translation>
    </message>
    <message>
        <source>This machine belongs to the run “%1”, and leaves it for this one.</source>
        <translation>Dieser Rechner gehört zum Lauf „%1“ und verlässt ihn für diesen.</translation>
    </message>
    <message>
        <source>The model of that run stays on the disk, in checkpoint.%1 of the island&apos;s directory.</source>
        <translation>Das Modell jenes Laufs bleibt auf der Platte, in checkpoint.%1 im Verzeichnis der Insel.</translation>
    </message>
</context>
<context>
    <name>atl::CopyLine</name>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>Copy: %1</source>
        <translation>Kopieren: %1</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
</context>
<context>
    <name>atl::CreateRunPage</name>
    <message>
        <source>A run of your own</source>
        <translation>Ein eigener Lauf</translation>
    </message>
    <message>
        <source>This machine becomes the run&apos;s hub: it keeps who takes part and decides when a round counts. The hub trains nothing itself; this machine can join it like any other.</source>
        <translation>Dieser Rechner wird der Hub des Laufs: Er weiß, wer teilnimmt, und entscheidet, wann eine Runde zählt. Der Hub selbst trainiert nichts; dieser Rechner kann beitreten wie jeder andere.</translation>
    </message>
    <message>
        <source>&amp;Create the run and start its hub</source>
        <translation>Lauf an&amp;legen und Hub starten</translation>
    </message>
    <message>
        <source>Create the run and start its hub</source>
        <translation>Lauf anlegen und Hub starten</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Lauf</translation>
    </message>
    <message>
        <source>Name of the run</source>
        <translation>Name des Laufs</translation>
    </message>
    <message>
        <source>&amp;Name:</source>
        <translation>&amp;Name:</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>Vorlage</translation>
    </message>
    <message>
        <source>%1: %2 parameters</source>
        <translation>%1: %2 Parameter</translation>
    </message>
    <message>
        <source>Islands that the first round waits for</source>
        <translation>Inseln, auf die die erste Runde wartet</translation>
    </message>
    <message>
        <source>as the preset says</source>
        <translation>wie in der Vorlage</translation>
    </message>
    <message>
        <source>Inner steps a round</source>
        <translation>Innere Schritte je Runde</translation>
    </message>
    <message>
        <source>&amp;Preset:</source>
        <translation>&amp;Vorlage:</translation>
    </message>
    <message>
        <source>&amp;Islands to begin with:</source>
        <translation>&amp;Inseln für den Beginn:</translation>
    </message>
    <message>
        <source>Inner &amp;steps a round:</source>
        <translation>Innere &amp;Schritte je Runde:</translation>
    </message>
    <message>
        <source>Kind of text</source>
        <translation>Art des Texts</translation>
    </message>
    <message>
        <source>Directory of text files, to be prepared</source>
        <translation>Ordner mit Textdateien, noch aufzubereiten</translation>
    </message>
    <message>
        <source>Dataset made by atoll data prepare</source>
        <translation>Datensatz von atoll data prepare</translation>
    </message>
    <message>
        <source>Directory of the text</source>
        <translation>Ordner des Texts</translation>
    </message>
    <message>
        <source>Choose the directory</source>
        <translation>Den Ordner wählen</translation>
    </message>
    <message>
        <source>&amp;Text:</source>
        <translation>&amp;Text:</translation>
    </message>
    <message>
        <source>Hub</source>
        <translation>Hub</translation>
    </message>
    <message>
        <source>Address and port that the hub listens on</source>
        <translation>Adresse und Port, auf denen der Hub lauscht</translation>
    </message>
    <message>
        <source>this machine&apos;s own address</source>
        <translation>die eigene Adresse dieses Rechners</translation>
    </message>
    <message>
        <source>&amp;Listen on:</source>
        <translation>&amp;Lauscht auf:</translation>
    </message>
    <message>
        <source>&amp;Reached at:</source>
        <translation>&amp;Erreichbar unter:</translation>
    </message>
    <message>
        <source>Others must be able to reach this port: open it in your router or firewall.</source>
        <translation>Andere müssen diesen Port erreichen: Öffnen Sie ihn in Router oder Firewall.</translation>
    </message>
    <message>
        <source>Give the run a name.</source>
        <translation>Geben Sie dem Lauf einen Namen.</translation>
    </message>
    <message>
        <source>The name is too long.</source>
        <translation>Der Name ist zu lang.</translation>
    </message>
    <message>
        <source>Choose the directory of the text.</source>
        <translation>Wählen Sie den Ordner des Texts.</translation>
    </message>
    <message>
        <source>There is no directory %1.</source>
        <translation>Den Ordner %1 gibt es nicht.</translation>
    </message>
    <message>
        <source>Write where the hub listens as HOST:PORT.</source>
        <translation>Schreiben Sie als HOST:PORT, wo der Hub lauscht.</translation>
    </message>
    <message>
        <source>The run could not be made.</source>
        <translation>Der Lauf ließ sich nicht anlegen.</translation>
    </message>
    <message>
        <source>C&amp;hoose…</source>
        <translation>W&amp;ählen …</translation>
    </message>
    <message>
        <source>Who runs it, as those see it whom you invite</source>
        <translation>Wer ihn betreibt, so wie es die Eingeladenen sehen</translation>
    </message>
    <message>
        <source>who runs it, as those see it whom you invite</source>
        <translation>wer ihn betreibt, so wie es die Eingeladenen sehen</translation>
    </message>
    <message>
        <source>&amp;Operator:</source>
        <translation>&amp;Betreiber:</translation>
    </message>
    <message>
        <source>Address that invites carry, HOST or HOST:PORT</source>
        <translation>Adresse, die in Einladungen steht, HOST oder HOST:PORT</translation>
    </message>
    <message>
        <source>Only this machine can reach %1.</source>
        <translation>Nur diese Maschine erreicht %1.</translation>
    </message>
    <message>
        <source>For a run with others, listen on 0.0.0.0 and name the address that they dial.</source>
        <translation>Für einen Lauf mit anderen lauschen Sie auf 0.0.0.0 und nennen die Adresse, die sie wählen.</translation>
    </message>
    <message>
        <source>Write where the hub is reached as HOST or HOST:PORT.</source>
        <translation>Geben Sie als HOST oder HOST:PORT an, wo der Hub zu erreichen ist.</translation>
    </message>
    <message>
        <source>%1 inner steps a round, %2 tokens a step. An island whose processor computes takes %3 of memory, with less at least %4; each synchronisation sends about %5.</source>
        <translation>%1 innere Schritte je Runde, %2 Token je Schritt. Eine Insel, deren Prozessor rechnet, nimmt %3 Speicher, wo es weniger gibt, mindestens %4; jeder Abgleich sendet etwa %5.</translation>
    </message>
</context>
<context>
    <name>atl::DemoChoice</name>
    <message>
        <source>Demo</source>
        <translation>Vorführung</translation>
    </message>
    <message>
        <source>A hub and several islands, each a process of its own, train a small language model together on this machine, over encrypted connections to one another. You watch the loss fall, then see what it cost and what the model writes. Nothing leaves the machine, and nothing stays running.</source>
        <translation>Ein Hub und mehrere Inseln, jede ein eigener Prozess, trainieren auf diesem Rechner gemeinsam ein kleines Sprachmodell, über verschlüsselte Verbindungen untereinander. Sie sehen den Loss fallen und am Ende, was es gekostet hat und was das Modell schreibt. Nichts verlässt den Rechner, und nichts läuft danach weiter.</translation>
    </message>
    <message>
        <source>&amp;Start the demo</source>
        <translation>Vorführung &amp;starten</translation>
    </message>
    <message>
        <source>Start the demo</source>
        <translation>Vorführung starten</translation>
    </message>
    <message>
        <source>Islands</source>
        <translation>Inseln</translation>
    </message>
    <message>
        <source>Minutes of training</source>
        <translation>Minuten Training</translation>
    </message>
    <message>
        <source>&amp;Kill an island in mid-round, and let a new one join</source>
        <translation>Eine Insel mitten in der Runde be&amp;enden und eine neue beitreten lassen</translation>
    </message>
    <message>
        <source>Kill an island in mid-round, and let a new one join</source>
        <translation>Eine Insel mitten in der Runde beenden und eine neue beitreten lassen</translation>
    </message>
    <message>
        <source>Text file to learn from</source>
        <translation>Textdatei, aus der gelernt wird</translation>
    </message>
    <message>
        <source>Choose a text file to learn from</source>
        <translation>Eine Textdatei wählen, aus der gelernt wird</translation>
    </message>
    <message>
        <source>&amp;Islands:</source>
        <translation>&amp;Inseln:</translation>
    </message>
    <message>
        <source>&amp;Minutes:</source>
        <translation>&amp;Minuten:</translation>
    </message>
    <message>
        <source>&amp;Text:</source>
        <translation>&amp;Text:</translation>
    </message>
    <message>
        <source>Text to learn from</source>
        <translation>Text, aus dem gelernt wird</translation>
    </message>
    <message>
        <source>The demo runs on this machine.</source>
        <translation>Die Vorführung läuft auf diesem Rechner.</translation>
    </message>
    <message>
        <source>Choose this machine at the left to see it.</source>
        <translation>Wählen Sie links diesen Rechner, um sie zu sehen.</translation>
    </message>
    <message>
        <source>The English text that the demo learns from is not installed.</source>
        <translation>Der englische Text, aus dem die Vorführung lernt, ist nicht installiert.</translation>
    </message>
    <message>
        <source>Install it with: apt-get install dict-gcide - or choose a text file of your own, of a megabyte or more.</source>
        <translation>Installieren Sie ihn mit: apt-get install dict-gcide - oder wählen Sie eine eigene Textdatei von einem Megabyte oder mehr.</translation>
    </message>
    <message>
        <source>There is no such file.</source>
        <translation>Diese Datei gibt es nicht.</translation>
    </message>
    <message>
        <source>Choose another one.</source>
        <translation>Wählen Sie eine andere.</translation>
    </message>
    <message>
        <source>The demo did not run to its end.</source>
        <translation>Die Vorführung kam nicht an ihr Ende.</translation>
    </message>
    <message>
        <source>&amp;Choose…</source>
        <translation>&amp;Wählen …</translation>
    </message>
</context>
<context>
    <name>atl::DemoProgress</name>
    <message>
        <source>Training</source>
        <translation>Trainiert</translation>
    </message>
    <message>
        <source>Synchronising</source>
        <translation>Abgleich</translation>
    </message>
    <message>
        <source>Recovering</source>
        <translation>Stellt wieder her</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Gone</source>
        <translation>Fort</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>&amp;Anhalten</translation>
    </message>
    <message>
        <source>Stop the demo</source>
        <translation>Vorführung anhalten</translation>
    </message>
    <message>
        <source>Show what the &amp;command says</source>
        <translation>Zeigen, was der &amp;Befehl sagt</translation>
    </message>
    <message>
        <source>Show what the command says</source>
        <translation>Zeigen, was der Befehl sagt</translation>
    </message>
    <message>
        <source>What the command says</source>
        <translation>Was der Befehl sagt</translation>
    </message>
    <message>
        <source>Islands of the demo</source>
        <translation>Inseln der Vorführung</translation>
    </message>
    <message>
        <source>Island</source>
        <translation>Insel</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Loss</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Round %1</source>
        <translation>Runde %1</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>Time of training: %1</source>
        <translation>Zeit des Trainings: %1</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>Wird angehalten …</translation>
    </message>
    <message>
        <source>Getting ready…</source>
        <translation>Wird vorbereitet …</translation>
    </message>
    <message>
        <source>Keeping the model…</source>
        <translation>Das Modell wird aufgehoben…</translation>
    </message>
</context>
<context>
    <name>atl::DemoSummaryView</name>
    <message>
        <source>What the demo came to</source>
        <translation>Ergebnis der Vorführung</translation>
    </message>
    <message>
        <source>It now writes:</source>
        <translation>Jetzt schreibt es:</translation>
    </message>
    <message>
        <source>What the model writes</source>
        <translation>Was das Modell schreibt</translation>
    </message>
    <message>
        <source>Open the &amp;model&apos;s directory</source>
        <translation>Ordner des &amp;Modells öffnen</translation>
    </message>
    <message>
        <source>Open the model&apos;s directory</source>
        <translation>Ordner des Modells öffnen</translation>
    </message>
    <message>
        <source>&amp;Another demo</source>
        <translation>N&amp;och eine Vorführung</translation>
    </message>
    <message>
        <source>Another demo</source>
        <translation>Noch eine Vorführung</translation>
    </message>
    <message>
        <source>Nothing: it could not be asked.</source>
        <translation>Nichts: Es ließ sich nicht fragen.</translation>
    </message>
    <message>
        <source>Trained:</source>
        <translation>Trainiert:</translation>
    </message>
    <message numerus="yes">
        <source>%n round(s), %1 tokens in %2</source>
        <translation>
            <numerusform>Eine Runde, %1 Token in %2</numerusform>
            <numerusform>%n Runden, %1 Token in %2</numerusform>
        </translation>
    </message>
    <message>
        <source>Speed:</source>
        <translation>Tempo:</translation>
    </message>
    <message>
        <source>Model:</source>
        <translation>Modell:</translation>
    </message>
    <message>
        <source>%1 parameters</source>
        <translation>%1 Parameter</translation>
    </message>
    <message>
        <source>Validation loss:</source>
        <translation>Validierungs-Loss:</translation>
    </message>
    <message>
        <source>Sent between islands:</source>
        <translation>Zwischen Inseln gesendet:</translation>
    </message>
    <message>
        <source>Without Atoll:</source>
        <translation>Ohne Atoll:</translation>
    </message>
    <message>
        <source>%1, %2 times as much (data-parallel training with fp32 gradients)</source>
        <translation>%1, das %2-Fache (datenparalleles Training mit fp32-Gradienten)</translation>
    </message>
    <message>
        <source>Time computing:</source>
        <translation>Zeit beim Rechnen:</translation>
    </message>
    <message>
        <source>Islands:</source>
        <translation>Inseln:</translation>
    </message>
    <message>
        <source>held the same bits after every round</source>
        <translation>hatten nach jeder Runde dieselben Bits</translation>
    </message>
    <message>
        <source>held DIFFERENT bits after a round</source>
        <translation>hatten nach einer Runde VERSCHIEDENE Bits</translation>
    </message>
    <message>
        <source>Kept in:</source>
        <translation>Liegt in:</translation>
    </message>
    <message>
        <source>from %1 to %2 nats per byte</source>
        <translation>von %1 auf %2 Nats je Byte</translation>
    </message>
    <message>
        <source>What the demo came to until it was stopped</source>
        <translation>Was die Demo ergab, bis sie gestoppt wurde</translation>
    </message>
    <message>
        <source>Last mean loss:</source>
        <translation>Letzter mittlerer Verlust:</translation>
    </message>
    <message>
        <source>%1 nats per byte</source>
        <translation>%1 Nats je Byte</translation>
    </message>
    <message>
        <source>%1 (no island could give its model)</source>
        <translation>%1 (keine Insel konnte ihr Modell geben)</translation>
    </message>
</context>
<context>
    <name>atl::DeviceStream</name>
    <message>
        <source>the other side does not read what it is sent</source>
        <translation>die andere Seite liest nicht, was ihr gesendet wird</translation>
    </message>
    <message>
        <source>what answers there sends more than the control protocol allows; it is no Atoll of this kind</source>
        <translation>was dort antwortet, sendet mehr, als das Steuerprotokoll erlaubt; es ist kein Atoll dieser Art</translation>
    </message>
    <message>
        <source>The agent has ended, or closed the connection.</source>
        <translation>Der Agent ist beendet oder hat die Verbindung geschlossen.</translation>
    </message>
    <message>
        <source>There is no ssh program here. Install OpenSSH&apos;s client.</source>
        <translation>Hier gibt es kein Programm ssh. Installieren Sie den Client von OpenSSH.</translation>
    </message>
    <message>
        <source>There is no &apos;atoll&apos; on the PATH of %1. Install it there.</source>
        <translation>Im PATH von %1 steht kein „atoll“. Installieren Sie es dort.</translation>
    </message>
    <message>
        <source>ssh could not log in to %1: %2. In a terminal, try: %3 true</source>
        <translation>ssh konnte sich bei %1 nicht anmelden: %2. Versuchen Sie im Terminal: %3 true</translation>
    </message>
    <message>
        <source>it does not say why</source>
        <translation>es sagt nicht, warum</translation>
    </message>
    <message>
        <source>The connection to %1 broke.</source>
        <translation>Die Verbindung zu %1 ist abgerissen.</translation>
    </message>
    <message>
        <source>The connection to %1 broke: %2.</source>
        <translation>Die Verbindung zu %1 ist abgerissen: %2.</translation>
    </message>
</context>
<context>
    <name>atl::DiagnosticsDialog</name>
    <message>
        <source>Diagnostics bundle</source>
        <translation>Diagnosepaket</translation>
    </message>
    <message>
        <source>State, logs and configuration of this node, for whoever helps you. Keys, invites and passwords are taken out, and nothing is sent anywhere: look through it, save it, and send it yourself.</source>
        <translation>Zustand, Protokolle und Einstellungen dieses Rechners, für alle, die Ihnen helfen. Schlüssel, Einladungen und Kennwörter sind entfernt, und nichts wird gesendet: Sehen Sie es durch, speichern Sie es und schicken Sie es selbst.</translation>
    </message>
    <message>
        <source>Collect &amp;again</source>
        <translation>&amp;Neu sammeln</translation>
    </message>
    <message>
        <source>&amp;Collect</source>
        <translation>&amp;Sammeln</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Collect the bundle</source>
        <translation>Paket zusammenstellen</translation>
    </message>
    <message>
        <source>Save the bundle</source>
        <translation>Paket speichern</translation>
    </message>
    <message>
        <source>File to make on %1:</source>
        <translation>Datei auf %1:</translation>
    </message>
    <message>
        <source>Files in the bundle</source>
        <translation>Dateien im Paket</translation>
    </message>
    <message>
        <source>What is in the chosen file</source>
        <translation>Inhalt der gewählten Datei</translation>
    </message>
    <message>
        <source>The bundle could not be made.</source>
        <translation>Das Paket konnte nicht erstellt werden.</translation>
    </message>
    <message>
        <source>The bundle is on %1.</source>
        <translation>Das Paket liegt auf %1.</translation>
    </message>
    <message>
        <source>Fetch it from there, for instance with scp, and look through it before you send it.</source>
        <translation>Holen Sie es von dort, etwa mit scp, und sehen Sie es durch, bevor Sie es verschicken.</translation>
    </message>
    <message>
        <source>The bundle cannot be shown.</source>
        <translation>Das Paket lässt sich nicht zeigen.</translation>
    </message>
    <message>
        <source>%1  (%2)</source>
        <translation>%1  (%2)</translation>
    </message>
    <message>
        <source>Nothing is kept yet: this is what the bundle would hold.</source>
        <translation>Noch ist nichts gespeichert: Dies wäre der Inhalt des Pakets.</translation>
    </message>
    <message>
        <source>Save the diagnostics bundle</source>
        <translation>Diagnosepaket speichern</translation>
    </message>
    <message>
        <source>Saved.</source>
        <translation>Gespeichert.</translation>
    </message>
    <message>
        <source>The bundle could not be saved in %1.</source>
        <translation>Das Paket konnte nicht in %1 gespeichert werden.</translation>
    </message>
    <message>
        <source>&amp;Save as…</source>
        <translation>&amp;Speichern unter …</translation>
    </message>
    <message>
        <source>Collecting…</source>
        <translation>Wird gesammelt …</translation>
    </message>
</context>
<context>
    <name>atl::FactsList</name>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::FirstStart</name>
    <message>
        <source>Train one language model together</source>
        <translation>Gemeinsam ein Sprachmodell trainieren</translation>
    </message>
    <message>
        <source>Machines that nobody owns together, the islands, train a model each for a while and then average what they learned. Nothing trains on this machine before you say so.</source>
        <translation>Rechner verschiedener Besitzer, die Inseln, trainieren eine Weile jeder für sich ein Modell und mitteln dann, was sie gelernt haben. Auf diesem Rechner trainiert nichts, bevor Sie es sagen.</translation>
    </message>
    <message>
        <source>&amp;Join a run</source>
        <translation>Einem Lauf &amp;beitreten</translation>
    </message>
    <message>
        <source>You have an invite from somebody who organises a run. This machine trains with the others.</source>
        <translation>Sie haben eine Einladung von jemandem, der einen Lauf veranstaltet. Dieser Rechner trainiert mit den anderen.</translation>
    </message>
    <message>
        <source>&amp;Host a run</source>
        <translation>Einen Lauf &amp;veranstalten</translation>
    </message>
    <message>
        <source>Create a run of your own, serve it from this machine, and invite others.</source>
        <translation>Einen eigenen Lauf anlegen, von diesem Rechner aus betreiben und andere einladen.</translation>
    </message>
    <message>
        <source>See a &amp;demo</source>
        <translation>Eine Vor&amp;führung ansehen</translation>
    </message>
    <message>
        <source>Three islands on this machine train a small model for five minutes. Nothing leaves the machine.</source>
        <translation>Drei Inseln auf diesem Rechner trainieren fünf Minuten lang ein kleines Modell. Nichts verlässt den Rechner.</translation>
    </message>
    <message>
        <source>The agent of this machine cannot be used.</source>
        <translation>Der Agent dieses Rechners lässt sich nicht benutzen.</translation>
    </message>
    <message>
        <source>Atoll</source>
        <translation>Atoll</translation>
    </message>
</context>
<context>
    <name>atl::GpuChoice</name>
    <message>
        <source>GPU %1</source>
        <translation>GPU %1</translation>
    </message>
    <message>
        <source>GPU %1: %2</source>
        <translation>GPU %1: %2</translation>
    </message>
    <message>
        <source>No GPU was found: this machine trains on its processor.</source>
        <translation>Keine GPU gefunden: Dieser Rechner trainiert auf seinem Prozessor.</translation>
    </message>
    <message>
        <source>GPUs: all, none, or for instance 0-3,6</source>
        <translation>GPUs: all (alle), none (keine) oder etwa 0-3,6</translation>
    </message>
</context>
<context>
    <name>atl::GpuPanel</name>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>memory errors</source>
        <translation>Speicherfehler</translation>
    </message>
    <message>
        <source>hot</source>
        <translation>heiß</translation>
    </message>
    <message>
        <source>warm</source>
        <translation>warm</translation>
    </message>
    <message>
        <source>Utilisation</source>
        <translation>Auslastung</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>GPU %1</source>
        <translation>GPU %1</translation>
    </message>
    <message>
        <source>Clock</source>
        <translation>Takt</translation>
    </message>
    <message>
        <source>ECC errors</source>
        <translation>ECC-Fehler</translation>
    </message>
    <message>
        <source>NVLink</source>
        <translation>NVLink</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>nicht bekannt</translation>
    </message>
    <message>
        <source>%1/s</source>
        <translation>%1/s</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>GPU %1 %2: %3</source>
        <translation>GPU %1 %2: %3</translation>
    </message>
    <message>
        <source>throttled</source>
        <translation>gedrosselt</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>OK</translation>
    </message>
    <message>
        <source>Throttled by</source>
        <translation>Gedrosselt durch</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>nichts</translation>
    </message>
    <message>
        <source>heat</source>
        <translation>Hitze</translation>
    </message>
    <message>
        <source>power cap</source>
        <translation>Leistungsgrenze</translation>
    </message>
    <message>
        <source>power brake</source>
        <translation>Leistungsbremse</translation>
    </message>
    <message>
        <source>hardware slowdown</source>
        <translation>Hardware-Drosselung</translation>
    </message>
    <message>
        <source>%1, chosen</source>
        <translation>%1, gewählt</translation>
    </message>
    <message>
        <source>The space bar shows its lines in the plots</source>
        <translation>Die Leertaste zeigt ihre Linien in den Kurven</translation>
    </message>
    <message>
        <source>Show its lines in the plots</source>
        <translation>Ihre Linien in den Kurven zeigen</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>Resume GPU %1</source>
        <translation>GPU %1 fortsetzen</translation>
    </message>
    <message>
        <source>Pause GPU %1</source>
        <translation>GPU %1 pausieren</translation>
    </message>
    <message>
        <source>Train on it again</source>
        <translation>Wieder auf ihr trainieren</translation>
    </message>
    <message>
        <source>Leave it to other programs; training goes on on the others</source>
        <translation>Sie anderen Programmen überlassen; auf den übrigen wird weiter trainiert</translation>
    </message>
</context>
<context>
    <name>atl::GpuPlot</name>
    <message>
        <source>Mean</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>Chosen GPU</source>
        <translation>Gewählte GPU</translation>
    </message>
    <message>
        <source>GPU %1</source>
        <translation>GPU %1</translation>
    </message>
    <message>
        <source>Least to greatest</source>
        <translation>Kleinste bis größte</translation>
    </message>
</context>
<context>
    <name>atl::GpusPage</name>
    <message>
        <source>Utilisation, last hour</source>
        <translation>Auslastung, letzte Stunde</translation>
    </message>
    <message>
        <source>Memory, last hour</source>
        <translation>Speicher, letzte Stunde</translation>
    </message>
    <message>
        <source>Power, last hour</source>
        <translation>Leistung, letzte Stunde</translation>
    </message>
    <message>
        <source>Temperature, last hour</source>
        <translation>Temperatur, letzte Stunde</translation>
    </message>
    <message>
        <source>No GPU in use here</source>
        <translation>Hier ist keine GPU in Gebrauch</translation>
    </message>
    <message>
        <source>This island computes on its processors. That is fine for small runs; a larger one names the GPUs that it wants in its node check. GPUs appear here once the trainer uses them.</source>
        <translation>Diese Insel rechnet auf ihren Prozessoren. Für kleine Läufe genügt das; ein größerer nennt in der Prüfung die GPUs, die er will. GPUs erscheinen hier, sobald der Trainer sie benutzt.</translation>
    </message>
    <message>
        <source>&amp;Check this machine</source>
        <translation>Diesen Rechner &amp;prüfen</translation>
    </message>
    <message>
        <source>%1 GPUs</source>
        <translation>%1 GPUs</translation>
    </message>
    <message>
        <source>%1 in use</source>
        <translation>%1 ausgelastet</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>the hottest %1</source>
        <translation>die heißeste %1</translation>
    </message>
    <message>
        <source>It was not done.</source>
        <translation>Es wurde nicht getan.</translation>
    </message>
</context>
<context>
    <name>atl::HistoryPlot</name>
    <message>
        <source>%1, smoothed</source>
        <translation>%1, geglättet</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Nothing yet: values come with the first steps.</source>
        <translation>Noch nichts: Werte kommen mit den ersten Schritten.</translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation>Lädt …</translation>
    </message>
    <message>
        <source>All islands</source>
        <translation>Alle Inseln</translation>
    </message>
    <message>
        <source>Validation by others</source>
        <translation>Validierung durch andere</translation>
    </message>
</context>
<context>
    <name>atl::HubIslands</name>
    <message>
        <source>Training</source>
        <translation>Trainiert</translation>
    </message>
    <message>
        <source>Synchronising</source>
        <translation>Abgleich</translation>
    </message>
    <message>
        <source>Recovering</source>
        <translation>Stellt wieder her</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Away</source>
        <translation>Nicht da</translation>
    </message>
    <message>
        <source>Removed</source>
        <translation>Entfernt</translation>
    </message>
    <message>
        <source>Not known</source>
        <translation>Nicht bekannt</translation>
    </message>
    <message>
        <source>Island</source>
        <translation>Insel</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Rounds accepted</source>
        <translation>Angenommene Runden</translation>
    </message>
    <message>
        <source>Last heard</source>
        <translation>Zuletzt gehört</translation>
    </message>
</context>
<context>
    <name>atl::HubModel</name>
    <message>
        <source>There is a run in %1 already. Choose another directory, or serve that one.</source>
        <translation>In %1 gibt es schon einen Lauf. Wählen Sie einen anderen Ordner, oder betreiben Sie jenen.</translation>
    </message>
    <message>
        <source>Preparing the text: cutting it into tokens ...</source>
        <translation>Der Text wird aufbereitet: in Token zerlegt ...</translation>
    </message>
    <message>
        <source>Creating the run: its model, its keys ...</source>
        <translation>Der Lauf wird angelegt: sein Modell, seine Schlüssel ...</translation>
    </message>
    <message>
        <source>Starting the hub ...</source>
        <translation>Der Hub wird gestartet ...</translation>
    </message>
    <message>
        <source>The hub cannot be started: %1 cannot be run. Install Atoll&apos;s command line beside this program.</source>
        <translation>Der Hub lässt sich nicht starten: %1 ist nicht ausführbar. Installieren Sie Atolls Befehlszeile neben diesem Programm.</translation>
    </message>
    <message>
        <source>The hub was started but does not answer.</source>
        <translation>Der Hub wurde gestartet, antwortet aber nicht.</translation>
    </message>
    <message>
        <source>The hub does not serve: %1</source>
        <translation>Der Hub läuft nicht: %1</translation>
    </message>
    <message>
        <source>Removing the island ...</source>
        <translation>Die Insel wird entfernt ...</translation>
    </message>
</context>
<context>
    <name>atl::HubPage</name>
    <message>
        <source>Remove the chosen island</source>
        <translation>Gewählte Insel entfernen</translation>
    </message>
    <message>
        <source>Make an invite</source>
        <translation>Einladung erstellen</translation>
    </message>
    <message>
        <source>Reached at:</source>
        <translation>Erreichbar unter:</translation>
    </message>
    <message>
        <source>Islands that enrolled</source>
        <translation>Angemeldete Inseln</translation>
    </message>
    <message>
        <source>Run %1</source>
        <translation>Lauf %1</translation>
    </message>
    <message>
        <source>Your run</source>
        <translation>Ihr Lauf</translation>
    </message>
    <message>
        <source>&amp;Start serving</source>
        <translation>Hub &amp;starten</translation>
    </message>
    <message>
        <source>That did not work.</source>
        <translation>Das hat nicht geklappt.</translation>
    </message>
    <message>
        <source>The hub does not serve: the run stands still.</source>
        <translation>Der Hub läuft nicht: Der Lauf steht still.</translation>
    </message>
    <message>
        <source>Islands wait, and go on once it serves again. What was learned is kept.</source>
        <translation>Inseln warten und machen weiter, sobald er wieder läuft. Was gelernt wurde, bleibt.</translation>
    </message>
    <message>
        <source>&amp;Go back…</source>
        <translation>&amp;Zurückgehen…</translation>
    </message>
    <message>
        <source>Go back to the newest state that islands keep</source>
        <translation>Zum neuesten Zustand zurückgehen, den Inseln aufbewahren</translation>
    </message>
    <message>
        <source>The run stands still.</source>
        <translation>Der Lauf steht still.</translation>
    </message>
    <message>
        <source>Go back to the state after round %1?</source>
        <translation>Zum Zustand nach Runde %1 zurückgehen?</translation>
    </message>
    <message>
        <source>The rounds that were committed after it are undone, and their data are trained on again. If an island that holds a newer state can come back, wait for it instead.</source>
        <translation>Die Runden danach werden rückgängig gemacht, und auf ihren Daten wird noch einmal trainiert. Kann eine Insel wiederkommen, die einen neueren Zustand hat, warten Sie besser auf sie.</translation>
    </message>
    <message>
        <source>&amp;Go back</source>
        <translation>&amp;Zurückgehen</translation>
    </message>
    <message>
        <source>The run is finished.</source>
        <translation>Der Lauf ist beendet.</translation>
    </message>
    <message>
        <source>Remove the island %1?</source>
        <translation>Die Insel %1 entfernen?</translation>
    </message>
    <message>
        <source>It is sent away at once, and its certificate is refused from now on. It can come back only with an invite: revoke those that are still open (atoll hub invites).</source>
        <translation>Sie wird sofort fortgeschickt, und ihr Zertifikat gilt ab jetzt nicht mehr. Zurück kann sie nur mit einer Einladung: widerrufen Sie die noch offenen (atoll hub invites).</translation>
    </message>
    <message>
        <source>&amp;Remove</source>
        <translation>&amp;Entfernen</translation>
    </message>
    <message>
        <source>Stop serving the run?</source>
        <translation>Den Hub anhalten?</translation>
    </message>
    <message>
        <source>The islands finish what they are doing, then wait until the hub serves again. Nothing is lost.</source>
        <translation>Die Inseln bringen zu Ende, was sie tun, und warten dann, bis der Hub wieder läuft. Nichts geht verloren.</translation>
    </message>
    <message>
        <source>&amp;Stop serving</source>
        <translation>&amp;Anhalten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>&amp;Remove the island…</source>
        <translation>Insel &amp;entfernen …</translation>
    </message>
    <message>
        <source>&amp;Invite…</source>
        <translation>&amp;Einladen …</translation>
    </message>
    <message>
        <source>&amp;Stop serving…</source>
        <translation>Hub an&amp;halten …</translation>
    </message>
    <message>
        <source>Nobody takes part yet</source>
        <translation>Noch nimmt niemand teil</translation>
    </message>
    <message>
        <source>Make an invite and hand it to somebody as a secret. Each machine that joins with it is an island, and stands here with what it does.</source>
        <translation>Erstellen Sie eine Einladung und geben Sie sie als Geheimnis weiter. Jeder Rechner, der mit ihr beitritt, ist eine Insel und steht hier mit dem, was er tut.</translation>
    </message>
    <message>
        <source>&amp;Make an invite…</source>
        <translation>Einladung &amp;erstellen …</translation>
    </message>
    <message>
        <source>Islands</source>
        <translation>Inseln</translation>
    </message>
    <message>
        <source>Reached at: %1</source>
        <translation>Erreichbar unter: %1</translation>
    </message>
</context>
<context>
    <name>atl::InviteDialog</name>
    <message>
        <source>Invite</source>
        <translation>Einladung</translation>
    </message>
    <message>
        <source>Whoever has an invite can join the run. Hand it over as a secret: not in public.</source>
        <translation>Wer eine Einladung hat, kann dem Lauf beitreten. Geben Sie sie als Geheimnis weiter: nicht öffentlich.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>How many islands may join with it</source>
        <translation>Wie viele Inseln damit beitreten dürfen</translation>
    </message>
    <message>
        <source>How long it is good</source>
        <translation>Wie lange sie gilt</translation>
    </message>
    <message>
        <source>an hour</source>
        <translation>eine Stunde</translation>
    </message>
    <message>
        <source>a day</source>
        <translation>einen Tag</translation>
    </message>
    <message>
        <source>a week</source>
        <translation>eine Woche</translation>
    </message>
    <message>
        <source>30 days</source>
        <translation>30 Tage</translation>
    </message>
    <message>
        <source>&amp;Make the invite</source>
        <translation>Einladung er&amp;stellen</translation>
    </message>
    <message>
        <source>Make the invite</source>
        <translation>Einladung erstellen</translation>
    </message>
    <message>
        <source>&amp;Islands:</source>
        <translation>&amp;Inseln:</translation>
    </message>
    <message>
        <source>&amp;Good for:</source>
        <translation>&amp;Gilt:</translation>
    </message>
    <message>
        <source>The invite</source>
        <translation>Die Einladung</translation>
    </message>
    <message>
        <source>&amp;Show</source>
        <translation>&amp;Zeigen</translation>
    </message>
    <message>
        <source>Show the invite and its QR code</source>
        <translation>Einladung und QR-Code zeigen</translation>
    </message>
    <message>
        <source>&amp;Copy the invite</source>
        <translation>Einladung &amp;kopieren</translation>
    </message>
    <message>
        <source>Copy the &amp;link</source>
        <translation>&amp;Link kopieren</translation>
    </message>
    <message>
        <source>The invite is in the clipboard.</source>
        <translation>Die Einladung ist in der Zwischenablage.</translation>
    </message>
    <message>
        <source>The link is in the clipboard.</source>
        <translation>Der Link ist in der Zwischenablage.</translation>
    </message>
    <message>
        <source>The invite could not be made.</source>
        <translation>Die Einladung ließ sich nicht erstellen.</translation>
    </message>
    <message>
        <source>&amp;Hide</source>
        <translation>&amp;Verbergen</translation>
    </message>
    <message>
        <source>Making the invite.</source>
        <translation>Die Einladung wird erstellt.</translation>
    </message>
    <message numerus="yes">
        <source>Invite %1 for %n island(s).</source>
        <translation>
            <numerusform>Einladung %1 für eine Insel.</numerusform>
            <numerusform>Einladung %1 für %n Inseln.</numerusform>
        </translation>
    </message>
    <message>
        <source>It is good until %1. On the other machine: open the app and paste it, or atoll join --invite-stdin</source>
        <translation>Sie gilt bis %1. Auf dem anderen Rechner: in der App einfügen, oder atoll join --invite-stdin</translation>
    </message>
    <message>
        <source>Paste it where only the one whom you invite can read it.</source>
        <translation>Fügen Sie sie dort ein, wo nur die eingeladene Person sie lesen kann.</translation>
    </message>
    <message>
        <source>Save the invite</source>
        <translation>Einladung speichern</translation>
    </message>
    <message>
        <source>Saved; only you can read the file.</source>
        <translation>Gespeichert; nur Sie können die Datei lesen.</translation>
    </message>
    <message>
        <source>The invite could not be saved.</source>
        <translation>Die Einladung ließ sich nicht speichern.</translation>
    </message>
    <message>
        <source>Save to a &amp;file…</source>
        <translation>In &amp;Datei speichern …</translation>
    </message>
</context>
<context>
    <name>atl::InvitePage</name>
    <message>
        <source>Invite</source>
        <translation>Einladung</translation>
    </message>
    <message>
        <source>Paste the invite that the run&apos;s operator gave you. It is read here; nothing is sent yet.</source>
        <translation>Fügen Sie die Einladung ein, die Sie vom Betreiber des Laufs haben. Sie wird hier gelesen; noch wird nichts gesendet.</translation>
    </message>
    <message>
        <source>&amp;Paste</source>
        <translation>&amp;Einfügen</translation>
    </message>
    <message>
        <source>Paste the invite</source>
        <translation>Einladung einfügen</translation>
    </message>
    <message>
        <source>Read the invite from a file</source>
        <translation>Einladung aus einer Datei lesen</translation>
    </message>
    <message>
        <source>An invite to the run “%1”.</source>
        <translation>Eine Einladung zum Lauf „%1“.</translation>
    </message>
    <message>
        <source>Its hub is %1, and it is good until %2.</source>
        <translation>Sein Hub ist %1, und sie gilt bis %2.</translation>
    </message>
    <message>
        <source>There is no text to paste.</source>
        <translation>Es gibt keinen Text zum Einfügen.</translation>
    </message>
    <message>
        <source>Copy the invite first.</source>
        <translation>Kopieren Sie zuerst die Einladung.</translation>
    </message>
    <message>
        <source>File with the invite</source>
        <translation>Datei mit der Einladung</translation>
    </message>
    <message>
        <source>The file cannot be read.</source>
        <translation>Die Datei lässt sich nicht lesen.</translation>
    </message>
    <message>
        <source>Choose another one.</source>
        <translation>Wählen Sie eine andere.</translation>
    </message>
    <message>
        <source>The file is empty.</source>
        <translation>Die Datei ist leer.</translation>
    </message>
    <message>
        <source>Choose the file that holds the invite.</source>
        <translation>Wählen Sie die Datei, in der die Einladung steht.</translation>
    </message>
    <message>
        <source>Open &amp;file…</source>
        <translation>&amp;Datei öffnen …</translation>
    </message>
</context>
<context>
    <name>atl::IslandsModel</name>
    <message>
        <source>Island</source>
        <translation>Insel</translation>
    </message>
    <message>
        <source>Region</source>
        <translation>Region</translation>
    </message>
    <message>
        <source>Round trip</source>
        <translation>Umlaufzeit</translation>
    </message>
    <message>
        <source>To it</source>
        <translation>Zu ihr</translation>
    </message>
    <message>
        <source>From it</source>
        <translation>Von ihr</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Retries</source>
        <translation>Wiederholungen</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>Version</translation>
    </message>
    <message>
        <source>away</source>
        <translation>nicht da</translation>
    </message>
    <message>
        <source>slowest</source>
        <translation>am langsamsten</translation>
    </message>
    <message>
        <source>up</source>
        <translation>da</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
</context>
<context>
    <name>atl::JoinCheckPage</name>
    <message>
        <source>Node check</source>
        <translation>Prüfung des Rechners</translation>
    </message>
    <message>
        <source>Can this machine train? What fails must be mended first.</source>
        <translation>Kann dieser Rechner trainieren? Fehler müssen zuerst behoben werden.</translation>
    </message>
    <message>
        <source>A check is under way</source>
        <translation>Eine Prüfung läuft</translation>
    </message>
    <message>
        <source>&amp;I have read the warnings and want to go on</source>
        <translation>&amp;Ich habe die Warnungen gelesen und möchte fortfahren</translation>
    </message>
    <message>
        <source>I have read the warnings and want to go on</source>
        <translation>Ich habe die Warnungen gelesen und möchte fortfahren</translation>
    </message>
    <message>
        <source>Check &amp;again</source>
        <translation>Noch einmal &amp;prüfen</translation>
    </message>
    <message>
        <source>Check this machine again</source>
        <translation>Diesen Rechner noch einmal prüfen</translation>
    </message>
    <message>
        <source>Checking: rows appear as they come.</source>
        <translation>Es wird geprüft: Zeilen erscheinen, sobald sie da sind.</translation>
    </message>
    <message>
        <source>The check could not be run to its end.</source>
        <translation>Die Prüfung kam nicht an ihr Ende.</translation>
    </message>
    <message>
        <source>This machine has not been checked yet.</source>
        <translation>Dieser Rechner wurde noch nicht geprüft.</translation>
    </message>
    <message numerus="yes">
        <source>%n row(s) failed, so this machine cannot join yet.</source>
        <translation>
            <numerusform>Eine Zeile ist fehlgeschlagen, daher kann dieser Rechner noch nicht beitreten.</numerusform>
            <numerusform>%n Zeilen sind fehlgeschlagen, daher kann dieser Rechner noch nicht beitreten.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n warning(s): this machine can train, but not as well as it could.</source>
        <translation>
            <numerusform>Eine Warnung: Dieser Rechner kann trainieren, aber nicht so gut, wie er könnte.</numerusform>
            <numerusform>%n Warnungen: Dieser Rechner kann trainieren, aber nicht so gut, wie er könnte.</numerusform>
        </translation>
    </message>
    <message>
        <source>This machine can train.</source>
        <translation>Dieser Rechner kann trainieren.</translation>
    </message>
    <message>
        <source>Failed rows come first. Do what stands in them, then check again.</source>
        <translation>Fehler stehen oben. Tun Sie, was in den Zeilen steht, und prüfen Sie dann noch einmal.</translation>
    </message>
</context>
<context>
    <name>atl::JoinModel</name>
    <message>
        <source>The hub did not answer in time. Is this machine online?</source>
        <translation>Der Hub hat nicht rechtzeitig geantwortet. Ist dieser Rechner online?</translation>
    </message>
    <message>
        <source>The agent could not ask the hub, and does not say why.</source>
        <translation>Der Agent konnte den Hub nicht fragen und sagt nicht, warum.</translation>
    </message>
    <message>
        <source>The hub that answers is not the one of this invite: its key is another one. Somebody may be in between. Do not join; ask who gave you the invite.</source>
        <translation>Der Hub, der antwortet, ist nicht der dieser Einladung: Sein Schlüssel ist ein anderer. Vielleicht steht jemand dazwischen. Treten Sie nicht bei; fragen Sie, wer Ihnen die Einladung gab.</translation>
    </message>
    <message>
        <source>The hub that answers serves another run than the one of this invite. Ask for a new invite.</source>
        <translation>Der Hub, der antwortet, betreibt einen anderen Lauf als den dieser Einladung. Bitten Sie um eine neue Einladung.</translation>
    </message>
    <message>
        <source>The agent could not join, and does not say why.</source>
        <translation>Der Agent konnte nicht beitreten und sagt nicht, warum.</translation>
    </message>
    <message>
        <source>The trainer failed; its log says why.</source>
        <translation>Der Trainer ist gescheitert; sein Protokoll sagt, warum.</translation>
    </message>
    <message>
        <source>The agent was restarted meanwhile. Try again.</source>
        <translation>Der Agent wurde unterdessen neu gestartet. Versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Meanwhile this machine was told to stop training, or to pause.</source>
        <translation>Unterdessen wurde diesem Rechner gesagt, das Training zu beenden oder anzuhalten.</translation>
    </message>
    <message>
        <source>Meanwhile this machine was told to leave the run.</source>
        <translation>Unterdessen wurde diesem Rechner gesagt, den Lauf zu verlassen.</translation>
    </message>
</context>
<context>
    <name>atl::JoinWizard</name>
    <message>
        <source>Join a run</source>
        <translation>Einem Lauf beitreten</translation>
    </message>
    <message>
        <source>&amp;Join</source>
        <translation>&amp;Beitreten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>&amp;Show dashboard</source>
        <translation>&amp;Übersicht zeigen</translation>
    </message>
    <message>
        <source>This machine is joining the run.</source>
        <translation>Dieser Rechner tritt dem Lauf gerade bei.</translation>
    </message>
    <message>
        <source>It can go on in the background, or stop; stopping is safe.</source>
        <translation>Das kann im Hintergrund weitergehen oder anhalten; Anhalten ist unbedenklich.</translation>
    </message>
    <message>
        <source>&amp;Go on in the background</source>
        <translation>Im &amp;Hintergrund weiter</translation>
    </message>
    <message>
        <source>&amp;Stop joining</source>
        <translation>Beitritt &amp;anhalten</translation>
    </message>
    <message>
        <source>&amp;Keep this window</source>
        <translation>&amp;Fenster behalten</translation>
    </message>
    <message>
        <source>Invite</source>
        <translation>Einladung</translation>
    </message>
    <message>
        <source>Trust</source>
        <translation>Vertrauen</translation>
    </message>
    <message>
        <source>Node check</source>
        <translation>Prüfung des Rechners</translation>
    </message>
    <message>
        <source>Resources</source>
        <translation>Ressourcen</translation>
    </message>
    <message>
        <source>Consent</source>
        <translation>Einwilligung</translation>
    </message>
    <message>
        <source>Joining</source>
        <translation>Beitritt</translation>
    </message>
    <message>
        <source>The invite was not used: this machine is joining a run.</source>
        <translation>Die Einladung wurde nicht benutzt: Dieser Rechner tritt gerade einem Lauf bei.</translation>
    </message>
    <message>
        <source>Open it again once that is done, or stopped.</source>
        <translation>Öffnen Sie sie noch einmal, wenn das fertig oder beendet ist.</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Zurück</translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>&amp;Use another invite</source>
        <translation>Andere Einladung &amp;verwenden</translation>
    </message>
</context>
<context>
    <name>atl::JoiningPage</name>
    <message>
        <source>Make a key</source>
        <translation>Schlüssel anlegen</translation>
    </message>
    <message>
        <source>Enrol with the hub</source>
        <translation>Beim Hub anmelden</translation>
    </message>
    <message>
        <source>Check this machine for the run</source>
        <translation>Rechner für den Lauf prüfen</translation>
    </message>
    <message>
        <source>Start the trainer</source>
        <translation>Trainer starten</translation>
    </message>
    <message>
        <source>Fetch the data</source>
        <translation>Daten holen</translation>
    </message>
    <message>
        <source>Fetch the model&apos;s state</source>
        <translation>Stand des Modells holen</translation>
    </message>
    <message>
        <source>First step</source>
        <translation>Erster Schritt</translation>
    </message>
    <message>
        <source>to do</source>
        <translation>steht aus</translation>
    </message>
    <message>
        <source>under way</source>
        <translation>läuft</translation>
    </message>
    <message>
        <source>done</source>
        <translation>fertig</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>fehlgeschlagen</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>%1, %2 left</source>
        <translation>%1, noch %2</translation>
    </message>
    <message>
        <source>Joining</source>
        <translation>Beitritt</translation>
    </message>
    <message>
        <source>Cancelling is safe at every stage. You may also close the window: the agent goes on.</source>
        <translation>Abbrechen ist jederzeit unbedenklich. Sie können das Fenster auch schließen: Der Agent macht weiter.</translation>
    </message>
    <message>
        <source>Try &amp;again</source>
        <translation>Noch einmal &amp;versuchen</translation>
    </message>
    <message>
        <source>Try the failed stage again</source>
        <translation>Die fehlgeschlagene Stufe noch einmal versuchen</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>This machine trains with the others now.</source>
        <translation>Dieser Rechner trainiert jetzt mit den anderen.</translation>
    </message>
    <message>
        <source>The dashboard shows what it does. Closing the window stops nothing.</source>
        <translation>Die Übersicht zeigt, was er tut. Das Schließen des Fensters hält nichts an.</translation>
    </message>
    <message>
        <source>Stopped, as you wished.</source>
        <translation>Angehalten, wie gewünscht.</translation>
    </message>
    <message>
        <source>Nothing trains here. You can try again.</source>
        <translation>Hier trainiert nichts. Sie können es noch einmal versuchen.</translation>
    </message>
    <message>
        <source>Installing the service that starts at boot.</source>
        <translation>Der Dienst für das Hochfahren wird eingerichtet.</translation>
    </message>
    <message>
        <source>It starts at boot from now on.</source>
        <translation>Es startet ab jetzt beim Hochfahren.</translation>
    </message>
    <message>
        <source>It does not start at boot: the service could not be installed.</source>
        <translation>Es startet nicht beim Hochfahren: Der Dienst ließ sich nicht einrichten.</translation>
    </message>
    <message>
        <source>Training goes on all the same. To try again: atoll service install</source>
        <translation>Das Training geht trotzdem weiter. Noch einmal versuchen: atoll service install</translation>
    </message>
    <message>
        <source>is tried again</source>
        <translation>wird noch einmal versucht</translation>
    </message>
    <message>
        <source>%1; it is tried again</source>
        <translation>%1; es wird noch einmal versucht</translation>
    </message>
    <message>
        <source>%1; it is tried again in %2 s</source>
        <translation>%1; es wird in %2 s noch einmal versucht</translation>
    </message>
    <message>
        <source>The trainer failed, and the agent starts it again by itself.</source>
        <translation>Der Trainer ist gescheitert; der Agent startet ihn von selbst noch einmal.</translation>
    </message>
    <message>
        <source>You may wait, or put right what it says and wait. Stopping is safe, too.</source>
        <translation>Sie können warten, oder beheben, was es meldet, und warten. Auch Abbrechen ist sicher.</translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation>Beitritt läuft …</translation>
    </message>
    <message>
        <source>%1, %2</source>
        <translation>%1, %2</translation>
    </message>
</context>
<context>
    <name>atl::Legend</name>
    <message>
        <source>Lines: %1</source>
        <translation>Linien: %1</translation>
    </message>
</context>
<context>
    <name>atl::LogFilter</name>
    <message>
        <source>Debug</source>
        <translation>Fehlersuche</translation>
    </message>
    <message>
        <source>Information</source>
        <translation>Information</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
</context>
<context>
    <name>atl::LogsPage</name>
    <message>
        <source>Logs</source>
        <translation>Protokolle</translation>
    </message>
    <message>
        <source>Diagnostics bundle</source>
        <translation>Diagnosepaket</translation>
    </message>
    <message>
        <source>State, logs and configuration without secrets, for whoever helps you</source>
        <translation>Zustand, Protokolle und Einstellungen ohne Geheimnisse, für alle, die Ihnen helfen</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>Copy the chosen lines, or all that are shown</source>
        <translation>Die gewählten Zeilen kopieren oder alle gezeigten</translation>
    </message>
    <message>
        <source>Show lines with these words</source>
        <translation>Zeilen mit diesen Wörtern zeigen</translation>
    </message>
    <message>
        <source>Least level</source>
        <translation>Geringste Stufe</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>Alles</translation>
    </message>
    <message>
        <source>Information and above</source>
        <translation>Ab Information</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>Warnungen und Fehler</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Written by</source>
        <translation>Geschrieben von</translation>
    </message>
    <message>
        <source>Agent and trainer</source>
        <translation>Agent und Trainer</translation>
    </message>
    <message>
        <source>Agent</source>
        <translation>Agent</translation>
    </message>
    <message>
        <source>Trainer</source>
        <translation>Trainer</translation>
    </message>
    <message>
        <source>Foll&amp;ow</source>
        <translation>&amp;Folgen</translation>
    </message>
    <message>
        <source>Follow: show new lines as they are written</source>
        <translation>Folgen: neue Zeilen zeigen, sobald sie geschrieben sind</translation>
    </message>
    <message>
        <source>Lines of the logs</source>
        <translation>Zeilen der Protokolle</translation>
    </message>
    <message numerus="yes">
        <source>%n line(s)</source>
        <translation>
            <numerusform>Eine Zeile</numerusform>
            <numerusform>%n Zeilen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n line(s)</source>
        <translation>
            <numerusform>%1 von einer Zeile</numerusform>
            <numerusform>%1 von %n Zeilen</numerusform>
        </translation>
    </message>
    <message>
        <source>No agent answers, so no new lines can be read.</source>
        <translation>Kein Agent antwortet, daher lassen sich keine neuen Zeilen lesen.</translation>
    </message>
    <message>
        <source>The logs cannot be read.</source>
        <translation>Die Protokolle lassen sich nicht lesen.</translation>
    </message>
    <message>
        <source>No line fits what you look for.</source>
        <translation>Keine Zeile passt zu dem, was Sie suchen.</translation>
    </message>
    <message>
        <source>Show more levels, or look for fewer words.</source>
        <translation>Zeigen Sie mehr Stufen, oder suchen Sie nach weniger Wörtern.</translation>
    </message>
    <message>
        <source>&amp;Diagnostics bundle…</source>
        <translation>&amp;Diagnosepaket …</translation>
    </message>
    <message>
        <source>Show lines with…</source>
        <translation>Zeilen zeigen mit …</translation>
    </message>
</context>
<context>
    <name>atl::LossSketch</name>
    <message>
        <source>Loss over rounds: none yet</source>
        <translation>Loss über Runden: noch keiner</translation>
    </message>
    <message>
        <source>Loss over rounds: from %1 in round %2 to %3 in round %4</source>
        <translation>Loss über Runden: von %1 in Runde %2 auf %3 in Runde %4</translation>
    </message>
    <message>
        <source>Round</source>
        <translation>Runde</translation>
    </message>
    <message>
        <source>The first point comes with the first round.</source>
        <translation>Der erste Punkt kommt mit der ersten Runde.</translation>
    </message>
    <message>
        <source>validation</source>
        <translation>Validierung</translation>
    </message>
    <message>
        <source>Loss, nats per byte</source>
        <translation>Loss, Nats je Byte</translation>
    </message>
    <message>
        <source>Loss, nats per token</source>
        <translation>Loss, Nats je Token</translation>
    </message>
</context>
<context>
    <name>atl::MainWindow</name>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Beenden</translation>
    </message>
    <message>
        <source>&amp;Forget this machine</source>
        <translation>Diesen Rechner &amp;vergessen</translation>
    </message>
    <message>
        <source>&amp;Appearance</source>
        <translation>&amp;Aussehen</translation>
    </message>
    <message>
        <source>As the &amp;system</source>
        <translation>Wie das &amp;System</translation>
    </message>
    <message>
        <source>&amp;Light</source>
        <translation>&amp;Hell</translation>
    </message>
    <message>
        <source>&amp;Dark</source>
        <translation>&amp;Dunkel</translation>
    </message>
    <message>
        <source>Runs of your own</source>
        <translation>Eigene Läufe</translation>
    </message>
    <message>
        <source>Demo - Atoll</source>
        <translation>Vorführung - Atoll</translation>
    </message>
    <message>
        <source>Atoll</source>
        <translation>Atoll</translation>
    </message>
    <message>
        <source>%1: %2 - Atoll</source>
        <translation>%1: %2 - Atoll</translation>
    </message>
    <message>
        <source>A demo is running</source>
        <translation>Eine Vorführung läuft</translation>
    </message>
    <message>
        <source>It ends with this app. End it?</source>
        <translation>Sie endet mit dieser App. Beenden?</translation>
    </message>
    <message>
        <source>&amp;Join a run…</source>
        <translation>Einem Lauf &amp;beitreten …</translation>
    </message>
    <message>
        <source>&amp;Diagnostics…</source>
        <translation>&amp;Diagnose …</translation>
    </message>
    <message>
        <source>&amp;End the demo</source>
        <translation>Vorführung &amp;beenden</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>atl::Meter</name>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::Node</name>
    <message>
        <source>What the agent says of its state cannot be read (%1). Is it of another version of Atoll?</source>
        <translation>Was der Agent von seinem Zustand sagt, ist nicht lesbar (%1). Ist er von einer anderen Version von Atoll?</translation>
    </message>
    <message>
        <source>An agent is started by this app on this machine only. On the other one, run: atoll service install</source>
        <translation>Diese App startet einen Agenten nur auf diesem Rechner. Auf dem anderen: atoll service install</translation>
    </message>
    <message>
        <source>The agent cannot be started: %1 cannot be run. Install Atoll&apos;s command line beside this program.</source>
        <translation>Der Agent lässt sich nicht starten: %1 ist nicht ausführbar. Installieren Sie Atolls Befehlszeile neben diesem Programm.</translation>
    </message>
</context>
<context>
    <name>atl::NodeHeader</name>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Fortsetzen</translation>
    </message>
    <message>
        <source>Train again</source>
        <translation>Wieder trainieren</translation>
    </message>
    <message>
        <source>Complete this round with the others, then leave</source>
        <translation>Diese Runde mit den anderen vollenden, dann gehen</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
    <message>
        <source>State: %1</source>
        <translation>Zustand: %1</translation>
    </message>
    <message>
        <source>run %1</source>
        <translation>Lauf %1</translation>
    </message>
    <message>
        <source>round %1</source>
        <translation>Runde %1</translation>
    </message>
    <message>
        <source>No run</source>
        <translation>Kein Lauf</translation>
    </message>
    <message>
        <source>No data</source>
        <translation>Keine Daten</translation>
    </message>
    <message>
        <source>This round: %1</source>
        <translation>Diese Runde: %1</translation>
    </message>
    <message>
        <source>It was not done.</source>
        <translation>Es wurde nicht getan.</translation>
    </message>
    <message>
        <source>&amp;Pause…</source>
        <translation>&amp;Pausieren …</translation>
    </message>
    <message>
        <source>&amp;Finish…</source>
        <translation>&amp;Abschließen …</translation>
    </message>
    <message>
        <source>&amp;Stop…</source>
        <translation>An&amp;halten …</translation>
    </message>
    <message>
        <source>&amp;Leave the run…</source>
        <translation>Den Lauf &amp;verlassen …</translation>
    </message>
    <message>
        <source>Free this machine and go on later</source>
        <translation>Diesen Rechner freigeben und später weitermachen</translation>
    </message>
</context>
<context>
    <name>atl::NodeView</name>
    <message>
        <source>Overview</source>
        <translation>Übersicht</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Training</translation>
    </message>
    <message>
        <source>Sync</source>
        <translation>Abgleich</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPUs</translation>
    </message>
    <message>
        <source>Checkpoints</source>
        <translation>Sicherungspunkte</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Prüfung</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>Protokolle</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Asking the agent of %1…</source>
        <translation>Der Agent von %1 wird gefragt …</translation>
    </message>
</context>
<context>
    <name>atl::Notice</name>
    <message>
        <source>In order</source>
        <translation>In Ordnung</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>Please wait</source>
        <translation>Bitte warten</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>What to do: %1</source>
        <translation>Was zu tun ist: %1</translation>
    </message>
    <message>
        <source>Details: %1</source>
        <translation>Einzelheiten: %1</translation>
    </message>
</context>
<context>
    <name>atl::OrganiseWindow</name>
    <message>
        <source>A run of your own</source>
        <translation>Ein eigener Lauf</translation>
    </message>
    <message>
        <source>&amp;Close</source>
        <translation>&amp;Schließen</translation>
    </message>
    <message>
        <source>%1 - your run</source>
        <translation>%1 - Ihr Lauf</translation>
    </message>
    <message>
        <source>Host a run</source>
        <translation>Einen Lauf veranstalten</translation>
    </message>
</context>
<context>
    <name>atl::OverviewPage</name>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>not running</source>
        <translation>läuft nicht</translation>
    </message>
    <message>
        <source>process %1</source>
        <translation>Prozess %1</translation>
    </message>
    <message numerus="yes">
        <source>started again %n time(s)</source>
        <translation>
            <numerusform>einmal neu gestartet</numerusform>
            <numerusform>%n-mal neu gestartet</numerusform>
        </translation>
    </message>
    <message>
        <source>Alerts</source>
        <translation>Meldungen</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Loss</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Utilisation</source>
        <translation>Auslastung</translation>
    </message>
    <message>
        <source>Next synchronisation</source>
        <translation>Nächster Abgleich</translation>
    </message>
    <message>
        <source>Round</source>
        <translation>Runde</translation>
    </message>
    <message>
        <source>Loss over time</source>
        <translation>Loss über die Zeit</translation>
    </message>
    <message>
        <source>Training ›</source>
        <translation>Training ›</translation>
    </message>
    <message>
        <source>Open the page Training</source>
        <translation>Die Seite Training öffnen</translation>
    </message>
    <message>
        <source>Validation</source>
        <translation>Validierung</translation>
    </message>
    <message>
        <source>This island&apos;s contribution</source>
        <translation>Beitrag dieser Insel</translation>
    </message>
    <message>
        <source>Tokens trained</source>
        <translation>Trainierte Token</translation>
    </message>
    <message>
        <source>Rounds accepted</source>
        <translation>Angenommene Runden</translation>
    </message>
    <message>
        <source>Time trained</source>
        <translation>Trainiert</translation>
    </message>
    <message>
        <source>%1 in all runs</source>
        <translation>%1 in allen Läufen</translation>
    </message>
    <message>
        <source>Last accepted</source>
        <translation>Zuletzt angenommen</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Rounds applied</source>
        <translation>Angewandte Runden</translation>
    </message>
    <message>
        <source>This machine</source>
        <translation>Dieser Rechner</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPUs</translation>
    </message>
    <message>
        <source>Disk free</source>
        <translation>Freier Plattenplatz</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Trainer</source>
        <translation>Trainer</translation>
    </message>
    <message>
        <source>validation %1</source>
        <translation>Validierung %1</translation>
    </message>
    <message>
        <source>no validation yet</source>
        <translation>noch keine Validierung</translation>
    </message>
    <message>
        <source>nats per token</source>
        <translation>Nats je Token</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>Token/s</translation>
    </message>
    <message>
        <source>%1 in this run</source>
        <translation>%1 in diesem Lauf</translation>
    </message>
    <message>
        <source>%1 tokens</source>
        <translation>%1 Token</translation>
    </message>
    <message>
        <source>computing %1 of the time</source>
        <translation>rechnet %1 der Zeit</translation>
    </message>
    <message>
        <source>MFU</source>
        <translation>MFU</translation>
    </message>
    <message>
        <source>computing</source>
        <translation>rechnet</translation>
    </message>
    <message>
        <source>the rest is synchronisation</source>
        <translation>der Rest ist Abgleich</translation>
    </message>
    <message>
        <source>known after a round</source>
        <translation>nach einer Runde bekannt</translation>
    </message>
    <message>
        <source>left</source>
        <translation>übrig</translation>
    </message>
    <message>
        <source>the last took %1</source>
        <translation>der letzte dauerte %1</translation>
    </message>
    <message>
        <source>none yet</source>
        <translation>noch keiner</translation>
    </message>
    <message>
        <source>Round %1</source>
        <translation>Runde %1</translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n island(s) live</source>
        <translation>
            <numerusform>%1 von %n Insel da</numerusform>
            <numerusform>%1 von %n Inseln da</numerusform>
        </translation>
    </message>
    <message>
        <source>Steps of this round: %1</source>
        <translation>Schritte dieser Runde: %1</translation>
    </message>
    <message>
        <source>nothing of later rounds was</source>
        <translation>nichts aus späteren Runden</translation>
    </message>
    <message>
        <source>%1 parameters</source>
        <translation>%1 Parameter</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>Loss, nats per token</source>
        <translation>Loss, Nats je Token</translation>
    </message>
    <message>
        <source>Last rounds</source>
        <translation>Letzte Runden</translation>
    </message>
    <message>
        <source>None has ended yet.</source>
        <translation>Noch keine ist zu Ende.</translation>
    </message>
    <message>
        <source>A step</source>
        <translation>Ein Schritt</translation>
    </message>
    <message>
        <source>Run is safe</source>
        <translation>Lauf ist sicher</translation>
    </message>
    <message>
        <source>up to round %1</source>
        <translation>bis Runde %1</translation>
    </message>
    <message>
        <source>not known yet</source>
        <translation>noch nicht bekannt</translation>
    </message>
    <message>
        <source>This island</source>
        <translation>Diese Insel</translation>
    </message>
    <message>
        <source>All islands</source>
        <translation>Alle Inseln</translation>
    </message>
</context>
<context>
    <name>atl::PhaseBar</name>
    <message>
        <source>Wait for the others</source>
        <translation>Warten auf die anderen</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>Verbinden</translation>
    </message>
    <message>
        <source>Quantise</source>
        <translation>Quantisieren</translation>
    </message>
    <message>
        <source>Reduce-scatter</source>
        <translation>Reduce-Scatter</translation>
    </message>
    <message>
        <source>All-gather</source>
        <translation>All-Gather</translation>
    </message>
    <message>
        <source>Failed attempts</source>
        <translation>Gescheiterte Versuche</translation>
    </message>
    <message>
        <source>Other</source>
        <translation>Anderes</translation>
    </message>
    <message>
        <source>Wait for the commit</source>
        <translation>Warten auf den Hub</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>Anwenden</translation>
    </message>
    <message>
        <source>Phases of the synchronisation</source>
        <translation>Phasen des Abgleichs</translation>
    </message>
    <message>
        <source>none yet</source>
        <translation>noch keiner</translation>
    </message>
    <message>
        <source>No synchronisation yet</source>
        <translation>Noch kein Abgleich</translation>
    </message>
</context>
<context>
    <name>atl::Playback</name>
    <message>
        <source>The recording ends here.</source>
        <translation>Die Aufzeichnung endet hier.</translation>
    </message>
    <message>
        <source>This is a recording: nothing was answered to %1 in it.</source>
        <translation>Dies ist eine Aufzeichnung: Auf %1 wurde darin nichts geantwortet.</translation>
    </message>
    <message>
        <source>The recording breaks off here: its last line is not whole.</source>
        <translation>Die Aufzeichnung bricht hier ab: Ihre letzte Zeile ist nicht vollständig.</translation>
    </message>
</context>
<context>
    <name>atl::Plot</name>
    <message>
        <source>Plot. Plus and minus zoom, arrows pan, Home shows all, Shift with arrows reads values.</source>
        <translation>Diagramm. Plus und Minus zoomen, Pfeile verschieben, Pos1 zeigt alles, Umschalt mit Pfeilen liest Werte ab.</translation>
    </message>
</context>
<context>
    <name>atl::QrCode</name>
    <message>
        <source>QR code of the invite</source>
        <translation>QR-Code der Einladung</translation>
    </message>
    <message>
        <source>No QR code</source>
        <translation>Kein QR-Code</translation>
    </message>
</context>
<context>
    <name>atl::ResourcesPage</name>
    <message>
        <source>Resources</source>
        <translation>Ressourcen</translation>
    </message>
    <message>
        <source>What of this machine the run may use. All of it can be changed later, in the settings.</source>
        <translation>Was der Lauf von diesem Rechner benutzen darf. Alles lässt sich später in den Einstellungen ändern.</translation>
    </message>
    <message>
        <source>Limits and network</source>
        <translation>Grenzen und Netz</translation>
    </message>
    <message>
        <source>Resources for the run</source>
        <translation>Ressourcen für den Lauf</translation>
    </message>
    <message>
        <source>Island</source>
        <translation>Insel</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>What the others see</source>
        <translation>Was die anderen sehen</translation>
    </message>
    <message>
        <source>&amp;GPUs:</source>
        <translation>&amp;GPUs:</translation>
    </message>
    <message>
        <source>Directory:</source>
        <translation>Ordner:</translation>
    </message>
    <message>
        <source>where the agent of that machine keeps it</source>
        <translation>wo der Agent jenes Rechners ihn hat</translation>
    </message>
    <message>
        <source>%1 (%2 free)</source>
        <translation>%1 (%2 frei)</translation>
    </message>
    <message>
        <source>Directory: %1</source>
        <translation>Ordner: %1</translation>
    </message>
    <message>
        <source>The name is too long.</source>
        <translation>Der Name ist zu lang.</translation>
    </message>
    <message>
        <source>Use at most %1 letters.</source>
        <translation>Nehmen Sie höchstens %1 Buchstaben.</translation>
    </message>
    <message>
        <source>These are no GPUs.</source>
        <translation>Das sind keine GPUs.</translation>
    </message>
    <message numerus="yes">
        <source>%n value(s) could not be set.</source>
        <translation>
            <numerusform>Ein Wert ließ sich nicht setzen.</numerusform>
            <numerusform>%n Werte ließen sich nicht setzen.</numerusform>
        </translation>
    </message>
    <message>
        <source>Beside each is what is wrong with it.</source>
        <translation>Daneben steht, was daran falsch ist.</translation>
    </message>
    <message>
        <source>Na&amp;me:</source>
        <translation>Na&amp;me:</translation>
    </message>
    <message>
        <source>Processor cores that train</source>
        <translation>Prozessorkerne, die trainieren</translation>
    </message>
    <message>
        <source>The others stay for what else you do here</source>
        <translation>Die übrigen bleiben für alles andere, was Sie hier tun</translation>
    </message>
    <message>
        <source>&amp;Cores:</source>
        <translation>&amp;Kerne:</translation>
    </message>
    <message>
        <source>all</source>
        <translation>alle</translation>
    </message>
    <message>
        <source> of %1</source>
        <translation> von %1</translation>
    </message>
</context>
<context>
    <name>atl::RingView</name>
    <message>
        <source>Ring of islands</source>
        <translation>Ring der Inseln</translation>
    </message>
    <message>
        <source>No ring yet: it is known from the first synchronisation on.</source>
        <translation>Noch kein Ring: Er ist ab dem ersten Abgleich bekannt.</translation>
    </message>
    <message>
        <source>%1 (this island)</source>
        <translation>%1 (diese Insel)</translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation>%1 zu %2</translation>
    </message>
    <message>
        <source>the slowest edge</source>
        <translation>die langsamste Kante</translation>
    </message>
    <message>
        <source>slowest</source>
        <translation>am langsamsten</translation>
    </message>
    <message>
        <source>↑ %1   ↓ %2</source>
        <translation>↑ %1   ↓ %2</translation>
    </message>
    <message numerus="yes">
        <source>island(s) in the last ring</source>
        <translation>
            <numerusform>Insel im letzten Ring</numerusform>
            <numerusform>Inseln im letzten Ring</numerusform>
        </translation>
    </message>
    <message>
        <source>Each sends to each: %1</source>
        <translation>Jede sendet an jede: %1</translation>
    </message>
    <message numerus="yes">
        <source>island(s), each with each</source>
        <translation>
            <numerusform>Insel</numerusform>
            <numerusform>Inseln, jede mit jeder</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::RoundsModel</name>
    <message>
        <source>Round</source>
        <translation>Runde</translation>
    </message>
    <message>
        <source>Began</source>
        <translation>Begann</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Loss</translation>
    </message>
    <message>
        <source>Validation</source>
        <translation>Validierung</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Training</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>Gesendet</translation>
    </message>
    <message>
        <source>Islands</source>
        <translation>Inseln</translation>
    </message>
    <message>
        <source>Contribution</source>
        <translation>Beitrag</translation>
    </message>
    <message>
        <source>under way</source>
        <translation>läuft</translation>
    </message>
    <message>
        <source>accepted</source>
        <translation>angenommen</translation>
    </message>
    <message>
        <source>not in it</source>
        <translation>nicht dabei</translation>
    </message>
    <message>
        <source>Synchronising</source>
        <translation>Abgleich</translation>
    </message>
</context>
<context>
    <name>atl::RunFigures</name>
    <message>
        <source>the run is finished</source>
        <translation>der Lauf ist beendet</translation>
    </message>
    <message>
        <source>waits for islands</source>
        <translation>wartet auf Inseln</translation>
    </message>
    <message>
        <source>the islands train</source>
        <translation>die Inseln trainieren</translation>
    </message>
    <message>
        <source>the islands synchronise</source>
        <translation>die Inseln gleichen sich ab</translation>
    </message>
    <message>
        <source>stands still</source>
        <translation>steht still</translation>
    </message>
    <message>
        <source>Round</source>
        <translation>Runde</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Loss</translation>
    </message>
    <message>
        <source>Islands here</source>
        <translation>Inseln da</translation>
    </message>
    <message>
        <source>Speed of all</source>
        <translation>Tempo aller</translation>
    </message>
    <message>
        <source>of %1</source>
        <translation>von %1</translation>
    </message>
    <message>
        <source>after the first round</source>
        <translation>nach der ersten Runde</translation>
    </message>
    <message>
        <source>nats per token</source>
        <translation>Nats je Token</translation>
    </message>
    <message>
        <source>validation %1</source>
        <translation>Validierung %1</translation>
    </message>
    <message>
        <source>a run begins with %1</source>
        <translation>ein Lauf beginnt mit %1</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>Token/s</translation>
    </message>
    <message>
        <source>safe on disks up to round %1</source>
        <translation>auf Platten sicher bis Runde %1</translation>
    </message>
</context>
<context>
    <name>atl::SettingEditor</name>
    <message>
        <source>no limit</source>
        <translation>keine Grenze</translation>
    </message>
    <message>
        <source>%1: unit</source>
        <translation>%1: Einheit</translation>
    </message>
    <message>
        <source>seconds</source>
        <translation>Sekunden</translation>
    </message>
    <message>
        <source>minutes</source>
        <translation>Minuten</translation>
    </message>
    <message>
        <source>hours</source>
        <translation>Stunden</translation>
    </message>
    <message>
        <source>days</source>
        <translation>Tage</translation>
    </message>
    <message>
        <source>always</source>
        <translation>immer</translation>
    </message>
    <message>
        <source>daily</source>
        <translation>täglich</translation>
    </message>
    <message>
        <source>several times a day</source>
        <translation>mehrmals am Tag</translation>
    </message>
    <message>
        <source>%1: from</source>
        <translation>%1: von</translation>
    </message>
    <message>
        <source>%1: until</source>
        <translation>%1: bis</translation>
    </message>
    <message>
        <source>%1: times</source>
        <translation>%1: Zeiten</translation>
    </message>
</context>
<context>
    <name>atl::SettingField</name>
    <message>
        <source>Take back</source>
        <translation>Zurücknehmen</translation>
    </message>
    <message>
        <source>Take back: %1</source>
        <translation>Zurücknehmen: %1</translation>
    </message>
    <message>
        <source>Go back to what holds without it</source>
        <translation>Zurück zu dem, was ohne sie gilt</translation>
    </message>
    <message>
        <source>%1: error: %2</source>
        <translation>%1: Fehler: %2</translation>
    </message>
    <message>
        <source>What is set here has no effect while the agent is started with another value</source>
        <translation>Was hier gesetzt wird, wirkt nicht, solange der Agent mit einem anderen Wert gestartet wird</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Settings of this machine</source>
        <translation>Einstellungen dieses Rechners</translation>
    </message>
    <message>
        <source>&amp;Discard changes</source>
        <translation>Änderungen &amp;verwerfen</translation>
    </message>
    <message>
        <source>&amp;Apply</source>
        <translation>&amp;Anwenden</translation>
    </message>
    <message>
        <source>Discard changes</source>
        <translation>Änderungen verwerfen</translation>
    </message>
    <message>
        <source>Apply changes</source>
        <translation>Änderungen anwenden</translation>
    </message>
    <message>
        <source>No agent answers, so nothing can be changed from here.</source>
        <translation>Kein Agent antwortet, daher lässt sich von hier nichts ändern.</translation>
    </message>
    <message>
        <source>The configuration cannot be read.</source>
        <translation>Die Einstellungen lassen sich nicht lesen.</translation>
    </message>
    <message>
        <source>Asking the agent for its configuration.</source>
        <translation>Der Agent wird nach seinen Einstellungen gefragt.</translation>
    </message>
    <message>
        <source>Changes are kept in %1. Your own %2 is never written; what is set here comes before it.</source>
        <translation>Änderungen stehen in %1. Ihre eigene %2 wird nie geschrieben; was hier gesetzt ist, geht ihr vor.</translation>
    </message>
    <message numerus="yes">
        <source>%n value(s) could not be set.</source>
        <translation>
            <numerusform>Ein Wert ließ sich nicht setzen.</numerusform>
            <numerusform>%n Werte ließen sich nicht setzen.</numerusform>
        </translation>
    </message>
    <message>
        <source>Beside each is what is wrong with it.</source>
        <translation>Daneben steht, was daran falsch ist.</translation>
    </message>
    <message>
        <source>&amp;Start the agent</source>
        <translation>Agenten &amp;starten</translation>
    </message>
    <message>
        <source>Start the agent of this machine</source>
        <translation>Den Agenten dieses Rechners starten</translation>
    </message>
    <message>
        <source>No agent runs on this machine, so nothing can be changed from here.</source>
        <translation>Auf diesem Rechner läuft kein Agent, also lässt sich von hier aus nichts ändern.</translation>
    </message>
    <message>
        <source>The agent keeps the settings. Starting it trains nothing before you joined a run.</source>
        <translation>Der Agent hält die Einstellungen. Gestartet trainiert er nichts, bevor Sie einem Lauf beigetreten sind.</translation>
    </message>
</context>
<context>
    <name>atl::SideBar</name>
    <message>
        <source>Runs of your own</source>
        <translation>Eigene Läufe</translation>
    </message>
    <message>
        <source>Demo</source>
        <translation>Vorführung</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>Rechner</translation>
    </message>
    <message>
        <source>Which machine is shown</source>
        <translation>Welcher Rechner gezeigt wird</translation>
    </message>
    <message>
        <source>Add a machine</source>
        <translation>Rechner hinzufügen</translation>
    </message>
    <message>
        <source>Look at another machine too, by ssh</source>
        <translation>Auch einen anderen Rechner ansehen, durch ssh</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::StatTile</name>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>atl::SyncPage</name>
    <message>
        <source>this island</source>
        <translation>diese Insel</translation>
    </message>
    <message>
        <source>Ring</source>
        <translation>Ring</translation>
    </message>
    <message>
        <source>Directly: each sends to each</source>
        <translation>Direkt: Jede sendet an jede</translation>
    </message>
    <message>
        <source>Last synchronisation</source>
        <translation>Letzter Abgleich</translation>
    </message>
    <message>
        <source>Last all-reduce</source>
        <translation>Letztes All-Reduce</translation>
    </message>
    <message>
        <source>Median</source>
        <translation>Median</translation>
    </message>
    <message>
        <source>95th percentile</source>
        <translation>95. Perzentil</translation>
    </message>
    <message>
        <source>Sent in the last round</source>
        <translation>Gesendet in der letzten Runde</translation>
    </message>
    <message>
        <source>Compute utilisation</source>
        <translation>Rechenauslastung</translation>
    </message>
    <message>
        <source>All-reduce times</source>
        <translation>Zeiten der All-Reduces</translation>
    </message>
    <message>
        <source>Distribution of all-reduce times</source>
        <translation>Verteilung der All-Reduce-Zeiten</translation>
    </message>
    <message>
        <source>Rounds</source>
        <translation>Runden</translation>
    </message>
    <message>
        <source>Time of each round</source>
        <translation>Zeit jeder Runde</translation>
    </message>
    <message>
        <source>Computing</source>
        <translation>Rechnen</translation>
    </message>
    <message>
        <source>Synchronising</source>
        <translation>Abgleich</translation>
    </message>
    <message>
        <source>Round</source>
        <translation>Runde</translation>
    </message>
    <message>
        <source>Active islands</source>
        <translation>Aktive Inseln</translation>
    </message>
    <message>
        <source>Active islands over rounds</source>
        <translation>Aktive Inseln über Runden</translation>
    </message>
    <message>
        <source>Islands</source>
        <translation>Inseln</translation>
    </message>
    <message>
        <source>Islands of the run</source>
        <translation>Inseln des Laufs</translation>
    </message>
    <message numerus="yes">
        <source>%n other island(s)</source>
        <translation>
            <numerusform>Eine andere Insel</numerusform>
            <numerusform>%n andere Inseln</numerusform>
        </translation>
    </message>
    <message>
        <source>No other islands yet</source>
        <translation>Noch keine anderen Inseln</translation>
    </message>
    <message>
        <source>This synchronisation</source>
        <translation>Dieser Abgleich</translation>
    </message>
    <message numerus="yes">
        <source>All-reduce times of %n round(s)</source>
        <translation>
            <numerusform>All-Reduce-Zeiten einer Runde</numerusform>
            <numerusform>All-Reduce-Zeiten von %n Runden</numerusform>
        </translation>
    </message>
    <message>
        <source>After the first synchronisation.</source>
        <translation>Nach dem ersten Abgleich.</translation>
    </message>
    <message>
        <source>Compute utilisation: %1</source>
        <translation>Rechenauslastung: %1</translation>
    </message>
    <message>
        <source>The slowest edge goes from %1 to %2: %3.</source>
        <translation>Die langsamste Kante führt von %1 zu %2: %3.</translation>
    </message>
    <message>
        <source>Every other edge is at least twice as fast, and all wait for this one.</source>
        <translation>Jede andere Kante ist mindestens doppelt so schnell, und alle warten auf diese.</translation>
    </message>
    <message>
        <source>Numbers: parts of the model under way</source>
        <translation>Zahlen: Teile des Modells, die unterwegs sind</translation>
    </message>
    <message>
        <source>Time of an all-reduce; height: rounds</source>
        <translation>Dauer eines All-Reduce; Höhe: Runden</translation>
    </message>
    <message>
        <source>half</source>
        <translation>Hälfte</translation>
    </message>
    <message>
        <source>95 %</source>
        <translation>95 %</translation>
    </message>
</context>
<context>
    <name>atl::Table</name>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>nicht bekannt</translation>
    </message>
</context>
<context>
    <name>atl::TaskSketch</name>
    <message>
        <source>%1 %2 after round %3</source>
        <translation>%1 %2 nach Runde %3</translation>
    </message>
    <message>
        <source>Accuracy on tasks: none yet</source>
        <translation>Genauigkeit bei Aufgaben: noch keine</translation>
    </message>
    <message>
        <source>Accuracy on tasks: %1</source>
        <translation>Genauigkeit bei Aufgaben: %1</translation>
    </message>
    <message>
        <source>Accuracy</source>
        <translation>Genauigkeit</translation>
    </message>
    <message>
        <source>The first point comes with the first evaluation.</source>
        <translation>Der erste Punkt kommt mit der ersten Auswertung.</translation>
    </message>
</context>
<context>
    <name>atl::TrainingPage</name>
    <message>
        <source>Learning rate</source>
        <translation>Lernrate</translation>
    </message>
    <message>
        <source>Gradient norm</source>
        <translation>Gradientennorm</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>Token je Sekunde</translation>
    </message>
    <message>
        <source>over steps</source>
        <translation>über Schritte</translation>
    </message>
    <message>
        <source>over tokens</source>
        <translation>über Token</translation>
    </message>
    <message>
        <source>over time</source>
        <translation>über die Zeit</translation>
    </message>
    <message>
        <source>What the curves run over</source>
        <translation>Worüber die Kurven laufen</translation>
    </message>
    <message>
        <source>&amp;Smoothing</source>
        <translation>&amp;Glättung</translation>
    </message>
    <message>
        <source>Smoothing</source>
        <translation>Glättung</translation>
    </message>
    <message>
        <source>&amp;Logarithmic</source>
        <translation>&amp;Logarithmisch</translation>
    </message>
    <message>
        <source>Logarithmic loss axis</source>
        <translation>Logarithmische Loss-Achse</translation>
    </message>
    <message>
        <source>Roun&amp;ds</source>
        <translation>&amp;Runden</translation>
    </message>
    <message>
        <source>Mark the rounds</source>
        <translation>Runden markieren</translation>
    </message>
    <message>
        <source>Zoom in (+)</source>
        <translation>Vergrößern (+)</translation>
    </message>
    <message>
        <source>Zoom out (-)</source>
        <translation>Verkleinern (-)</translation>
    </message>
    <message>
        <source>Show all (Home)</source>
        <translation>Alles zeigen (Pos1)</translation>
    </message>
    <message>
        <source>Loss, nats per token</source>
        <translation>Loss, Nats je Token</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Loss</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Training</translation>
    </message>
    <message>
        <source>Validation</source>
        <translation>Validierung</translation>
    </message>
    <message>
        <source>Show %1</source>
        <translation>%1 zeigen</translation>
    </message>
    <message>
        <source>Export as CSV</source>
        <translation>Als CSV exportieren</translation>
    </message>
    <message>
        <source>CSV files (*.csv)</source>
        <translation>CSV-Dateien (*.csv)</translation>
    </message>
    <message>
        <source>Export as PNG</source>
        <translation>Als PNG exportieren</translation>
    </message>
    <message>
        <source>Pictures (*.png)</source>
        <translation>Bilder (*.png)</translation>
    </message>
    <message>
        <source>Is there room, and may you write there?</source>
        <translation>Ist dort Platz, und dürfen Sie dort schreiben?</translation>
    </message>
    <message>
        <source>Written to %1.</source>
        <translation>Nach %1 geschrieben.</translation>
    </message>
    <message>
        <source>%1 was not written.</source>
        <translation>%1 wurde nicht geschrieben.</translation>
    </message>
    <message>
        <source>Export what is shown as CSV…</source>
        <translation>Gezeigtes als CSV exportieren …</translation>
    </message>
    <message>
        <source>Export the loss plot as PNG…</source>
        <translation>Loss-Diagramm als PNG exportieren …</translation>
    </message>
    <message>
        <source>All islands</source>
        <translation>Alle Inseln</translation>
    </message>
</context>
<context>
    <name>atl::Tray</name>
    <message>
        <source>&amp;Show Atoll</source>
        <translation>Atoll &amp;zeigen</translation>
    </message>
    <message>
        <source>&amp;Quit the app (training goes on)</source>
        <translation>App &amp;beenden (das Training geht weiter)</translation>
    </message>
    <message>
        <source>Atoll</source>
        <translation>Atoll</translation>
    </message>
    <message>
        <source>%1: run %2</source>
        <translation>%1: Lauf %2</translation>
    </message>
</context>
<context>
    <name>atl::TrustPage</name>
    <message>
        <source>The hub does not say.</source>
        <translation>Der Hub sagt es nicht.</translation>
    </message>
    <message>
        <source>Trust</source>
        <translation>Vertrauen</translation>
    </message>
    <message>
        <source>Who invites you? The hub is asked who it is; the invite&apos;s secret is not sent yet.</source>
        <translation>Wer lädt Sie ein? Der Hub wird gefragt, wer er ist; das Geheimnis der Einladung wird noch nicht gesendet.</translation>
    </message>
    <message>
        <source>Asking the hub</source>
        <translation>Hub wird gefragt</translation>
    </message>
    <message>
        <source>Try &amp;again</source>
        <translation>Noch einmal &amp;versuchen</translation>
    </message>
    <message>
        <source>Ask the hub again</source>
        <translation>Hub noch einmal fragen</translation>
    </message>
    <message>
        <source>Run:</source>
        <translation>Lauf:</translation>
    </message>
    <message>
        <source>Operator:</source>
        <translation>Betreiber:</translation>
    </message>
    <message>
        <source>Model:</source>
        <translation>Modell:</translation>
    </message>
    <message>
        <source>Hub:</source>
        <translation>Hub:</translation>
    </message>
    <message>
        <source>Invite good until:</source>
        <translation>Einladung gilt bis:</translation>
    </message>
    <message>
        <source>Its key (SHA-256):</source>
        <translation>Sein Schlüssel (SHA-256):</translation>
    </message>
    <message>
        <source>It was started, but does not answer.</source>
        <translation>Er wurde gestartet, antwortet aber nicht.</translation>
    </message>
    <message>
        <source>Starting this machine&apos;s agent.</source>
        <translation>Der Agent dieses Rechners wird gestartet.</translation>
    </message>
    <message>
        <source>It asks the hub, and trains later. It does nothing before you agreed.</source>
        <translation>Er fragt den Hub und trainiert später. Er tut nichts, bevor Sie einwilligen.</translation>
    </message>
    <message>
        <source>The agent cannot be started or reached.</source>
        <translation>Der Agent lässt sich nicht starten oder erreichen.</translation>
    </message>
    <message>
        <source>Asking the hub who it is.</source>
        <translation>Der Hub wird gefragt, wer er ist.</translation>
    </message>
    <message>
        <source>The hub is the one in the invite: its key was verified.</source>
        <translation>Der Hub ist der aus der Einladung: Sein Schlüssel wurde geprüft.</translation>
    </message>
    <message>
        <source>%1, %2 parameters</source>
        <translation>%1, %2 Parameter</translation>
    </message>
    <message>
        <source>%1 (%2 left)</source>
        <translation>%1 (noch %2)</translation>
    </message>
</context>
<context>
    <name>atl::UnreachedView</name>
    <message>
        <source>&amp;Start the agent</source>
        <translation>Agenten &amp;starten</translation>
    </message>
    <message>
        <source>It goes on with the run that this machine has joined, and stays when this window is closed.</source>
        <translation>Er macht mit dem Lauf weiter, dem dieser Rechner beigetreten ist, und bleibt, wenn dieses Fenster geschlossen wird.</translation>
    </message>
    <message>
        <source>&amp;Try now</source>
        <translation>Jetzt &amp;versuchen</translation>
    </message>
    <message>
        <source>It is tried again by itself, too, less and less often.</source>
        <translation>Es wird auch von selbst wieder versucht, mit der Zeit seltener.</translation>
    </message>
    <message>
        <source>What was said</source>
        <translation>Die Meldung</translation>
    </message>
    <message>
        <source>Or in a terminal</source>
        <translation>Oder in einem Terminal</translation>
    </message>
    <message>
        <source>In a terminal of that machine</source>
        <translation>In einem Terminal jenes Rechners</translation>
    </message>
    <message>
        <source>Now, until Ctrl-C:</source>
        <translation>Jetzt, bis Strg-C:</translation>
    </message>
    <message>
        <source>Always, also after a restart of the machine:</source>
        <translation>Immer, auch nach einem Neustart des Rechners:</translation>
    </message>
    <message>
        <source>No agent runs on this machine</source>
        <translation>Auf diesem Rechner läuft kein Agent</translation>
    </message>
    <message>
        <source>No agent runs on %1</source>
        <translation>Auf %1 läuft kein Agent</translation>
    </message>
    <message>
        <source>The agent is the program that trains, in the background and without a window. While none runs, nothing trains and there is nothing to show. What was trained before is safe on the disk.</source>
        <translation>Der Agent ist das Programm, das trainiert: im Hintergrund und ohne Fenster. Solange keiner läuft, wird nicht trainiert, und es gibt nichts zu zeigen. Was schon trainiert wurde, liegt sicher auf der Platte.</translation>
    </message>
    <message>
        <source>%1 cannot be reached</source>
        <translation>%1 ist nicht erreichbar</translation>
    </message>
    <message>
        <source>Training there goes on without this window. Is the machine on, does the network reach it, and can you log in there by ssh without a password?</source>
        <translation>Das Training geht dort auch ohne dieses Fenster weiter. Ist der Rechner an, erreicht ihn das Netz, und können Sie sich dort mit ssh ohne Passwort anmelden?</translation>
    </message>
    <message>
        <source>Nothing is known of %1 yet.</source>
        <translation>Von %1 ist noch nichts bekannt.</translation>
    </message>
</context>
<context>
    <name>atl::WishDialog</name>
    <message>
        <source>Pause</source>
        <translation>Pausieren</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pausieren</translation>
    </message>
    <message>
        <source>Finish</source>
        <translation>Abschließen</translation>
    </message>
    <message>
        <source>The right way to stop: the others keep what this island did.</source>
        <translation>Der richtige Weg aufzuhören: Die anderen behalten, was diese Insel getan hat.</translation>
    </message>
    <message>
        <source>&amp;Finish</source>
        <translation>&amp;Abschließen</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Training ends now and does not begin again until you resume.</source>
        <translation>Das Training endet jetzt und beginnt erst wieder, wenn Sie fortsetzen.</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>&amp;Anhalten</translation>
    </message>
    <message>
        <source>Leave the run</source>
        <translation>Den Lauf verlassen</translation>
    </message>
    <message>
        <source>This island leaves the run. What it contributed so far stays; joining again comes back.</source>
        <translation>Diese Insel verlässt den Lauf. Was sie beigetragen hat, bleibt; ein neuer Beitritt bringt sie zurück.</translation>
    </message>
    <message>
        <source>&amp;Leave</source>
        <translation>&amp;Verlassen</translation>
    </message>
    <message>
        <source>until I resume</source>
        <translation>bis ich fortsetze</translation>
    </message>
    <message>
        <source>for 1 hour</source>
        <translation>für 1 Stunde</translation>
    </message>
    <message>
        <source>for 2 hours</source>
        <translation>für 2 Stunden</translation>
    </message>
    <message>
        <source>for 8 hours</source>
        <translation>für 8 Stunden</translation>
    </message>
    <message>
        <source>for 1 day</source>
        <translation>für 1 Tag</translation>
    </message>
    <message>
        <source>How long</source>
        <translation>Wie lange</translation>
    </message>
    <message>
        <source>&amp;How long:</source>
        <translation>&amp;Wie lange:</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>What it costs: %1</source>
        <translation>Was es kostet: %1</translation>
    </message>
    <message>
        <source>It was not done.</source>
        <translation>Es wurde nicht getan.</translation>
    </message>
    <message>
        <source>Training stops after the current step, and does not begin again with a restart of the machine.</source>
        <translation>Das Training hält nach dem laufenden Schritt an und beginnt auch nach einem Neustart des Rechners nicht von selbst wieder.</translation>
    </message>
</context>
<context>
    <name>atl::WizardSteps</name>
    <message>
        <source>Step %1 of %2: %3</source>
        <translation>Schritt %1 von %2: %3</translation>
    </message>
</context>
</TS>
