<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en_US" sourcelanguage="en">
<context>
    <name>atl::CheckPage</name>
    <message numerus="yes">
        <source>%n row(s) failed.</source>
        <translation>
            <numerusform>%n row failed.</numerusform>
            <numerusform>%n rows failed.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n warning(s).</source>
        <translation>
            <numerusform>%n warning.</numerusform>
            <numerusform>%n warnings.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::DemoSummaryView</name>
    <message numerus="yes">
        <source>%n round(s), %1 tokens in %2</source>
        <translation>
            <numerusform>%n round, %1 tokens in %2</numerusform>
            <numerusform>%n rounds, %1 tokens in %2</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::InviteDialog</name>
    <message numerus="yes">
        <source>Invite %1 for %n island(s).</source>
        <translation>
            <numerusform>Invite %1 for %n island.</numerusform>
            <numerusform>Invite %1 for %n islands.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::JoinCheckPage</name>
    <message numerus="yes">
        <source>%n row(s) failed, so this machine cannot join yet.</source>
        <translation>
            <numerusform>%n row failed, so this machine cannot join yet.</numerusform>
            <numerusform>%n rows failed, so this machine cannot join yet.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n warning(s): this machine can train, but not as well as it could.</source>
        <translation>
            <numerusform>%n warning: this machine can train, but not as well as it could.</numerusform>
            <numerusform>%n warnings: this machine can train, but not as well as it could.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::LogsPage</name>
    <message numerus="yes">
        <source>%n line(s)</source>
        <translation>
            <numerusform>%n line</numerusform>
            <numerusform>%n lines</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n line(s)</source>
        <translation>
            <numerusform>%1 of %n line</numerusform>
            <numerusform>%1 of %n lines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::OverviewPage</name>
    <message numerus="yes">
        <source>%1 of %n island(s) live</source>
        <translation>
            <numerusform>%1 of %n island live</numerusform>
            <numerusform>%1 of %n islands live</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>started again %n time(s)</source>
        <translation>
            <numerusform>started again %n time</numerusform>
            <numerusform>started again %n times</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::ResourcesPage</name>
    <message numerus="yes">
        <source>%n value(s) could not be set.</source>
        <translation>
            <numerusform>%n value could not be set.</numerusform>
            <numerusform>%n values could not be set.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::RingView</name>
    <message numerus="yes">
        <source>island(s) in the last ring</source>
        <translation>
            <numerusform>island in the last ring</numerusform>
            <numerusform>islands in the last ring</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>island(s), each with each</source>
        <translation>
            <numerusform>island</numerusform>
            <numerusform>islands, each with each</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::SettingsPage</name>
    <message numerus="yes">
        <source>%n value(s) could not be set.</source>
        <translation>
            <numerusform>%n value could not be set.</numerusform>
            <numerusform>%n values could not be set.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>atl::SyncPage</name>
    <message numerus="yes">
        <source>%n other island(s)</source>
        <translation>
            <numerusform>%n other island</numerusform>
            <numerusform>%n other islands</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>All-reduce times of %n round(s)</source>
        <translation>
            <numerusform>All-reduce times of %n round</numerusform>
            <numerusform>All-reduce times of %n rounds</numerusform>
        </translation>
    </message>
</context>
</TS>
