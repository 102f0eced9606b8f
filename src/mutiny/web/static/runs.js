// The list of runs: filtered and paged here, kept up to date by the server where there is one.
const PER_PAGE = 50;
const GROUPS = {
  all: ["All", () => true],
  failed: ["Bugs", (row) => row.verdict === "bug" || row.verdict === "recovery_bug"],
  timeout: ["Timeouts", (row) => row.verdict === "timeout"],
  inconclusive: ["Inconclusive", (row) => row.verdict === "inconclusive"],
  passed: ["Passed", (row) => row.verdict === "success"],
  running: ["Running", (row) => row.state === "running"],
  broken: ["Broken off", (row) => row.state === "broken off"],
};
const CHOICES = { kind: "All kinds", contract: "All contracts", target: "All targets", rule: "All rules" };
const WORDS = { success: "passed", bug: "bug", recovery_bug: "recovery bug" };

const $ = (selector) => document.querySelector(selector);
const given = JSON.parse($("#rows").textContent);
const rows = new Map(given.rows.map((row) => [row.id, row]));
const isServed = given.epoch !== "";
const asked = new URLSearchParams(location.search || location.hash.slice(1));
const state = { verdict: GROUPS[asked.get("verdict")] ? asked.get("verdict") : "all", page: 0, text: asked.get("text") || "" };
for (const name of Object.keys(CHOICES)) state[name] = asked.get(name) || "";
let version = Math.max(0, ...given.rows.map((row) => row.version || 0));
let epoch = given.epoch;
let shown = [];

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function address(row) {
  const path = row.id.split("/").map(encodeURIComponent).join("/");
  return isServed ? `/run/${path}` : `runs/${path}/${row.page || "index.html"}`;
}

const verdictOf = (row) => (row.verdict ? WORDS[row.verdict] || row.verdict : row.state);
const toneOf = (row) =>
  row.state === "running" ? "running" : row.verdict === "success" ? "good" : row.verdict.endsWith("bug") || row.verdict === "timeout" ? "bad" : "unsure";

function when(row) {
  if (row.started === null) return ["", ""];
  const moment = new Date(row.started * 1000);
  const passed = Date.now() / 1000 - row.started;
  const whole = moment.toLocaleString();
  if (passed < 60) return ["just now", whole];
  if (passed < 3600) return [`${Math.floor(passed / 60)} min ago`, whole];
  if (passed < 86400) return [`${Math.floor(passed / 3600)} h ago`, whole];
  return [moment.toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" }), whole];
}

function span(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
}

function fits(row, except) {
  for (const name of Object.keys(CHOICES)) if (name !== except && state[name] && row[name] !== state[name]) return false;
  if (except !== "verdict" && !GROUPS[state.verdict][1](row)) return false;
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const whole = words.length ? `${row.title} ${row.target} ${row.rule} ${row.message} ${row.plant} ${row.kind} ${row.id}`.toLowerCase() : "";
  return words.every((word) => whole.includes(word));
}

function drawVerdicts(all) {
  const holder = $(".verdicts");
  const like = all.filter((row) => fits(row, "verdict"));
  const buttons = Object.entries(GROUPS).map(([name, [word, isIn]]) => {
    const count = like.filter(isIn).length;
    const button = holder.querySelector(`[data-name=${name}]`) || make("button");
    button.type = "button";
    button.dataset.name = name;
    button.setAttribute("aria-pressed", String(state.verdict === name));
    button.replaceChildren(document.createTextNode(word), make("span", "count", String(count)));
    button.hidden = count === 0 && name !== "all" && state.verdict !== name;
    return button;
  });
  if (holder.childElementCount !== buttons.length) holder.replaceChildren(...buttons);
}

function drawChoices(all) {
  for (const [name, everything] of Object.entries(CHOICES)) {
    const counts = new Map();
    for (const row of all) if (row[name] && fits(row, name)) counts.set(row[name], (counts.get(row[name]) || 0) + 1);
    if (state[name] && !counts.has(state[name])) counts.set(state[name], 0);
    const select = $(`#${name}`);
    const texts = [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
    const key = JSON.stringify([texts, state[name]]);
    if (select.dataset.key === key) continue;
    select.dataset.key = key;
    select.replaceChildren(new Option(everything, ""), ...texts.map(([value, count]) => new Option(`${value} (${count})`, value)));
    select.value = state[name];
    select.disabled = texts.length < 2 && !state[name];
  }
}

function rowOf(row) {
  const line = make("tr");
  const verdict = make("td");
  verdict.append(make("span", `mark ${toneOf(row)}`, verdictOf(row)));
  const run = make("td", "what");
  const link = make("a", "", row.title || row.id);
  link.href = address(row);
  run.append(link);
  const more = [row.rule, row.message].filter(Boolean);
  if (row.verdict !== "success" && more.length) {
    const said = make("p");
    if (row.rule) said.append(make("code", "", row.rule), document.createTextNode(" "));
    said.append(document.createTextNode(row.message));
    run.append(said);
  }
  const target = make("td", "target", row.target);
  if (row.plant) target.append(make("small", "", row.plant));
  const [text, whole] = when(row);
  const started = make("td", "when", text);
  started.title = whole;
  line.append(verdict, run, make("td", "kind-of", row.kind), target, started, make("td", "number", span(row.took)));
  return line;
}

function drawNow(all) {
  const running = all.filter((row) => row.state === "running");
  $("#now").hidden = running.length === 0;
  $("#now ul").replaceChildren(
    ...running.slice(0, 12).map((row) => {
      const item = make("li");
      const link = make("a", "", row.title);
      link.href = address(row);
      const bar = make("progress");
      bar.setAttribute("aria-label", `Progress of ${row.title}`);
      if (row.total) [bar.max, bar.value] = [row.total, row.done];
      const told = row.total ? `${Math.floor((100 * row.done) / row.total)} %` : "";
      item.append(make("span", "quiet", `${row.kind} · ${row.target}`), link, bar, make("span", "quiet", [told, row.message].filter(Boolean).join(" · ")));
      return item;
    }),
  );
}

function draw() {
  const all = [...rows.values()].sort((one, other) => (other.started ?? 0) - (one.started ?? 0) || (one.id < other.id ? 1 : -1));
  shown = all.filter((row) => fits(row));
  const pages = Math.max(1, Math.ceil(shown.length / PER_PAGE));
  state.page = Math.min(state.page, pages - 1);
  const first = state.page * PER_PAGE;
  const focused = document.activeElement?.closest("tbody") && document.activeElement.getAttribute("href");
  $("tbody").replaceChildren(...shown.slice(first, first + PER_PAGE).map(rowOf));
  if (focused) [...document.querySelectorAll("tbody a")].find((link) => link.getAttribute("href") === focused)?.focus();
  $(".nothing").hidden = shown.length > 0 || rows.size === 0;
  $(".runs").hidden = shown.length === 0;
  $(".pages").hidden = shown.length <= PER_PAGE;
  $("#newer").disabled = state.page === 0;
  $("#older").disabled = state.page >= pages - 1;
  $("#place").textContent = rows.size === 0 ? "No run yet." : `${first + 1} to ${Math.min(first + PER_PAGE, shown.length)} of ${shown.length}`;
  if (rows.size === 0) $(".pages").hidden = false;
  drawVerdicts(all);
  drawChoices(all);
  drawNow(all);
}

function choose(changes) {
  Object.assign(state, { page: 0 }, changes);
  const query = new URLSearchParams();
  for (const name of ["text", "kind", "contract", "target", "rule"]) if (state[name]) query.set(name, state[name]);
  if (state.verdict !== "all") query.set("verdict", state.verdict);
  history.replaceState(null, "", `${isServed ? "?" : "#"}${query}`);
  draw();
}

$("#text").value = state.text;
$("#text").addEventListener("input", (event) => choose({ text: event.target.value }));
for (const name of Object.keys(CHOICES)) $(`#${name}`).addEventListener("change", (event) => choose({ [name]: event.target.value }));
$(".verdicts").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) choose({ verdict: button.dataset.name });
});
function turn(by) {
  choose({ page: state.page + by });
  $(".runs").scrollIntoView({ block: "start" });
}
$("#newer").addEventListener("click", () => turn(-1));
$("#older").addEventListener("click", () => turn(1));
function clear() {
  $("#text").value = "";
  choose({ text: "", verdict: "all", kind: "", contract: "", target: "", rule: "" });
}
$("#clear").addEventListener("click", clear);
document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    $("#text").focus();
  } else if (event.key === "Escape") {
    clear();
  } else if ((event.key === "j" || event.key === "k") && !isTyping) {
    const links = [...document.querySelectorAll("tbody a")];
    const place = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    links[Math.max(0, Math.min(place, links.length - 1))]?.focus();
  }
});

// A hidden page keeps no connection: a browser has only a few for one address.
let events = null;
function listen() {
  events?.close();
  events = null;
  if (!isServed || document.hidden) return;
  events = new EventSource(`/events?version=${version}&epoch=${epoch}`);
  events.onopen = () => ($("#link").textContent = "");
  events.onerror = () => ($("#link").textContent = " · not connected, trying again");
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
    if (told.epoch !== epoch) rows.clear(); // a server that began anew tells everything
    [version, epoch] = [told.version, told.epoch];
    for (const row of told.rows) rows.set(row.id, row);
    for (const id of told.gone) rows.delete(id);
    draw();
  };
}
document.addEventListener("visibilitychange", listen);
draw();
listen();
