"""How all pages look, by day and by night, on wide and on narrow screens."""

from __future__ import annotations

STYLE = """
:root { --ink: #1b2430; --soft: #5b6878; --paper: #f4f6f8; --card: #fff; --line: #e2e7ec;
  --good: #2f9e63; --bad: #d13b32; --bad-soft: #e0655d; --unsure: #d9a21b; --wait: #b9c4d0;
  --check: #4a86c5; --phase-a: #dfe5eb; --phase-b: #cfe0f2; --phase-c: #f6d5cf; --phase-d: #d6ecd9;
  --chaos: #d13b3209; --area: #4a86c522; --untried: #d3dae1; --link: #1f62a8;
  --c0: #1f5fa8; --c1: #c4551b; --c2: #2b8a55; --c3: #8a4fa3; --c4: #a3283c; --c5: #5b6b7a;
  color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #93a1b1; --paper: #12171e;
  --card: #1a212b; --line: #2b3542; --good: #3fb877; --bad: #ef5f56; --bad-soft: #c7544c;
  --unsure: #e0b13c; --wait: #435061; --check: #5d9bdc; --phase-a: #2a3440; --phase-b: #24405c;
  --phase-c: #59302c; --phase-d: #24482f; --chaos: #ef5f5610; --area: #5d9bdc2e;
  --untried: #364250; --link: #7db4ec; --c0: #6aa5e8; --c1: #ec8a55; --c2: #57bd86; --c3: #bf8bd6;
  --c4: #e06a7e; --c5: #9aaab9 } }
* { box-sizing: border-box }
body { font: 15px/1.55 system-ui, "Segoe UI", sans-serif; color: var(--ink);
background: var(--paper) }
body { margin: 0 }
main { max-width: 1200px; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.65rem; margin: .15rem 0 .3rem; line-height: 1.25 }
h2 { font-size: 1.1rem; margin: 2rem 0 .6rem }
.kind { color: var(--soft); text-transform: uppercase; letter-spacing: .08em; font-size: .74rem }
.hypothesis { color: var(--soft); margin: 0 0 .9rem; max-width: 60rem }
.badge { display: inline-block; padding: .22rem .8rem; border-radius: 999px; color: #fff;
font-weight: 650 }
.badge { letter-spacing: .03em } .reason { margin: .8rem 0 0; font-weight: 550; max-width: 70rem }
.success { background: var(--good) } .failed { background: var(--bad) }
.unsure { background: var(--unsure) }
.facts { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; color: var(--soft);
margin: .9rem 0 0; padding: 0 }
.facts li { list-style: none } .facts b { color: var(--ink); font-weight: 600 }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 1rem;
margin: 1.5rem 0 0 }
.card, .finding, .sheet { background: var(--card); border: 1px solid var(--line);
border-radius: 10px }
.card { padding: 1rem 1.2rem; display: flex; gap: 1rem; align-items: center }
.card h3 { margin: 0; font-size: .82rem; color: var(--soft); font-weight: 550 }
.card .figure { font-size: 1.5rem; font-weight: 680; line-height: 1.2 }
.card p { margin: 0; font-size: .82rem }
.card p { color: var(--soft) } .card svg { flex: none }
.sheet { padding: .6rem .7rem; overflow-x: auto }
.timeline { width: 100%; min-width: 860px; display: block }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink) }
svg .lane { fill: var(--soft) }
svg .tick { fill: var(--soft); text-anchor: middle; font-size: 10px }
svg .scale { fill: var(--soft); text-anchor: end; font-size: 9.5px } svg .phase { font-weight: 600 }
svg .grid { stroke: var(--line) } svg .chaos { fill: var(--chaos) }
svg .shock { stroke-width: 1; stroke-dasharray: 3 3; opacity: .7 }
svg .fault { fill: var(--bad); font-weight: 600 }
svg .lasting { fill: var(--bad); opacity: .22 }
svg .recovery { stroke: var(--good); stroke-width: 2 }
svg .inside { fill: #fff; font-size: 10.5px } svg .beside { fill: var(--soft); font-size: 10.5px }
svg .area { fill: var(--area) } svg .latency { fill: none; stroke: var(--check); stroke-width: 1.4 }
.legend { color: var(--soft); font-size: .8rem; margin: .4rem 0 0 }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
margin: 0 .3rem -1px 1rem }
.finding { padding: 1rem 1.3rem; border-left: 5px solid var(--bad); margin: 0 0 1rem }
.finding h3 { margin: 0 0 .6rem; font-size: 1.02rem }
dl { margin: 0; display: grid; gap: .4rem 1rem }
dl { grid-template-columns: 9.5rem 1fr } dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; font-size: .86rem }
th { color: var(--soft); font-weight: 550 }
td, th { text-align: left; padding: .32rem .6rem; border-bottom: 1px solid var(--line);
vertical-align: top }
tr:last-child td { border-bottom: 0 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
code { font: .88em ui-monospace, monospace; overflow-wrap: anywhere } .holds { color: var(--good) }
.broken { color: var(--bad); font-weight: 600 } .quiet { color: var(--soft) }
.doubt { color: var(--unsure) }
a { color: var(--link) } .links { margin: .7rem 0 0; padding: 0; display: flex; flex-wrap: wrap }
.links { gap: .2rem 1.2rem } .links li { list-style: none }
.sheet p { color: var(--soft); margin: .3rem 0 } .sheet h3 { margin: .6rem 0 0; font-size: .95rem }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1.5rem }
.three { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)) }
.three { gap: 1rem } .good { color: var(--good) } .bad { color: var(--bad); font-weight: 600 }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .4em }
.figures td, .figures th { text-align: right; white-space: nowrap }
.figures td { font-variant-numeric: tabular-nums }
.figures td:first-child, .figures th:first-child, .figures .left { text-align: left }
.figures td:last-child { white-space: normal } td small, th small { color: var(--soft) }
.chart { width: 100%; height: auto } .chart line { stroke: var(--line) }
.chart polyline { fill: none; stroke-width: 2.2; stroke-linejoin: round }
.chart text { font: 11.5px system-ui, sans-serif; fill: var(--soft) }
.chart .mid { text-anchor: middle } .chart .end { text-anchor: end }
.chart .title { fill: var(--ink) } .chart .name { font-weight: 600 }
.calls text { font: 12px ui-monospace, monospace } .calls line { stroke: var(--line) }
.calls { display: block } .calls .stop { stroke: var(--ink); stroke-width: 1; opacity: .45 }
td.call { font-family: ui-monospace, monospace; word-break: break-word }
@media (max-width: 60rem) { .two { grid-template-columns: 1fr } }
@media (max-width: 640px) { dl { grid-template-columns: 1fr } main { padding: 1.2rem .8rem }
  h1 { font-size: 1.35rem } .sheet { padding: .5rem } }
svg .ring { font-weight: 650; font-size: 12px }
"""
