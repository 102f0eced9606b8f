// A run that goes on, or a session that is over: what the server sees of its directory, once a second.
const $ = (selector) => document.querySelector(selector);
const live = $("#live");
const MOST_CELLS = 120, MOST_LINES = 14;
const CHARTS = [
  ["Tokens a minute", ["tokens_per_minute"], (value) => Math.round(value).toLocaleString()],
  ["Tests and coverage", ["test_pass_rate", "test_coverage"], (value) => `${(100 * value).toFixed(0)} %`],
  ["Tasks", ["tasks_completed", "tasks_remaining"], (value) => String(Math.round(value))],
  ["Memory", ["memory_usage_mb"], (value) => `${Math.round(value)} MB`],
  ["Errors and checkpoints", ["errors_encountered", "checkpoint_count"], (value) => String(Math.round(value))],
  ["Availability", ["availability"], (value) => `${(100 * value).toFixed(0)} %`],
];
const NAMES = {
  tokens_per_minute: "tokens", test_pass_rate: "tests passed", test_coverage: "coverage", tasks_completed: "done", tasks_remaining: "left",
  memory_usage_mb: "memory", errors_encountered: "errors", checkpoint_count: "checkpoints", availability: "available",
};
const TONES = { success: "good", expected: "good", bug: "bad", recovery_bug: "bad", timeout: "bad", inconclusive: "unsure" };
const COUNTED = { success: "passed", expected: "rightly refused", bug: "bugs", recovery_bug: "recovery bugs", timeout: "timeouts", inconclusive: "inconclusive" };
const steps = [], faults = [], charts = [];

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function span(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
}
const percent = (share) => `${(100 * share).toFixed(share === 1 ? 0 : 1)} %`;
const show = (id, isShown) => ($(id).hidden = !isShown);

function drawProgress(look) {
  const bar = $("progress");
  const isTime = look.unit === "s";
  const amount = isTime ? span : (value) => value.toLocaleString();
  if (look.total) [bar.max, bar.value] = [look.total, look.done];
  else if (look.state === "running") bar.removeAttribute("value");
  const whole = look.total ? `${amount(look.done)} of ${amount(look.total)}` : amount(look.done);
  $("#done").textContent = isTime ? whole : `${whole} ${look.unit}`;
  const passed = look.passed_s === null ? [] : [`${span(look.passed_s)} so far`];
  if (look.left_s !== null) passed.push(`about ${span(look.left_s)} left`);
  $("#left").textContent = passed.join(", ");
  $("#note").textContent = look.note;
}

function drawFigures(look) {
  const now = look.session?.now || {};
  const figures = [];
  const add = (name, text, tone = "") => figures.push([name, text, tone]);
  if (now.phase) add("Phase", now.phase);
  if (look.availability !== null) add("Availability", percent(look.availability), look.availability < 0.9 ? "bad" : "");
  if (figures.length) add("Faults", look.faults.toLocaleString());
  const bad = (look.counts.bug || 0) + (look.counts.recovery_bug || 0);
  if (bad) add("Bugs", String(bad), "bad");
  if (now.tokens_per_minute !== undefined) add("Tokens a minute", Math.round(now.tokens_per_minute).toLocaleString());
  if (now.test_pass_rate !== undefined) add("Tests passed", percent(now.test_pass_rate), now.test_pass_rate < 1 ? "unsure" : "");
  if (now.test_coverage !== undefined) add("Coverage", percent(now.test_coverage));
  if (now.tasks_completed !== undefined) add("Tasks", `${now.tasks_completed} of ${now.tasks_completed + (now.tasks_remaining || 0)}`);
  if (now.errors_encountered !== undefined) add("Errors", now.errors_encountered.toLocaleString());
  $("#figures").replaceChildren(
    ...figures.map(([name, text, tone]) => {
      const item = make("li");
      item.append(make("span", "quiet", name), make("b", tone, text));
      return item;
    }),
  );
}

function drawCounts(counts) {
  const entries = Object.entries(counts).filter(([, count]) => count);
  show("#counts", entries.length > 0);
  $("#counts .stack").replaceChildren(
    ...entries.map(([verdict, count]) => {
      const part = make("i", TONES[verdict] || "unsure");
      part.style.flexGrow = count;
      return part;
    }),
  );
  $("#counts ul").replaceChildren(
    ...entries.map(([verdict, count]) => {
      const item = make("li");
      item.append(make("i", TONES[verdict] || "unsure"), `${count.toLocaleString()} ${COUNTED[verdict] || verdict}`);
      return item;
    }),
  );
}

function lineOf(step) {
  const item = make("li", TONES[step.verdict]);
  const word = step.fired ? step.technique || "fired" : step.word;
  item.append(make("span", "number", String(step.number)), make("code", "", step.text), make("span", "word", word), make("span", "took", `${step.took_s.toFixed(2)} s`));
  if (step.note) item.append(make("p", "", step.note));
  return item;
}

function addSteps(fresh) {
  if (!fresh.length) return;
  for (const step of fresh) {
    steps.push(step);
    if (step.fired) faults.push(step);
    const cell = make("li", step.fired ? "bad" : TONES[step.verdict]);
    cell.title = `${step.number} ${step.text}: ${step.word}`;
    $("#strip").append(cell);
  }
  while ($("#strip").childElementCount > MOST_CELLS) $("#strip").firstElementChild.remove();
  steps.splice(0, steps.length - MOST_LINES);
  faults.splice(0, faults.length - MOST_LINES);
  $("#steps ol").replaceChildren(...steps.toReversed().map(lineOf));
  $("#faults ol").replaceChildren(...faults.toReversed().map(lineOf));
  show("#steps", steps.length > 0);
  show("#faults", faults.length > 0);
}

function drawAgents(agents) {
  show("#agents", agents.length > 0);
  $("#agents tbody").replaceChildren(
    ...agents.map((agent) => {
      const row = make("tr");
      const busy = make("td");
      if (agent.utilization !== null) {
        const meter = make("meter");
        [meter.max, meter.value] = [1, agent.utilization];
        meter.setAttribute("aria-label", `${agent.name} is busy`);
        busy.append(meter, ` ${Math.round(100 * agent.utilization)} %`);
      }
      row.append(make("th", "", agent.name), make("td", "quiet", agent.role), make("td", "", agent.doing), busy, make("td", "number", agent.tokens === null ? "" : agent.tokens.toLocaleString()));
      row.firstChild.scope = "row";
      return row;
    }),
  );
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const MINUTES = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880, 7200, 14400];
const hours = (seconds) => (seconds < 7200 && seconds % 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(seconds % 3600 ? 1 : 0)} h`);

function chartOf([title, names, format], figure) {
  const line = colour("--line"), soft = colour("--soft"), font = "11px system-ui, sans-serif";
  const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return new uPlot(
    {
      width: figure.clientWidth, height: 160, legend: { show: false }, cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      scales: { x: { time: false } },
      axes: [
        { ...axis, space: 70, size: 30, incrs: MINUTES.map((minutes) => 60 * minutes), values: (_, values) => values.map(hours) },
        { ...axis, size: 58, values: (_, values) => values.map(format) },
      ],
      series: [{}, ...names.map((name, place) => ({ label: NAMES[name], stroke: colour(`--c${place}`), width: 1.6, points: { show: false }, spanGaps: false }))],
      hooks: {
        setCursor: [
          (plot) => {
            const at = plot.cursor.idx;
            figure.querySelector("output").textContent = at === null || at === undefined ? "" : `${hours(plot.data[0][at])}: ${names.map((_, place) => (plot.data[place + 1][at] == null ? "" : format(plot.data[place + 1][at]))).join(", ")}`;
          },
        ],
      },
    },
    [[], ...names.map(() => [])],
    figure.querySelector("div"),
  );
}

function drawCharts(session) {
  if (!session.times) return;
  show("#session", true);
  for (const kind of CHARTS) {
    const [title, names] = kind;
    const there = names.filter((name) => session.columns[name]);
    if (!there.length) continue;
    let chart = charts.find((one) => one.title === title);
    if (!chart) {
      const figure = make("figure");
      const caption = make("figcaption", "", title);
      if (there.length > 1)
        there.forEach((name, place) => {
          const key = make("span", `key c${place}`, NAMES[name]);
          caption.append(key);
        });
      caption.append(make("output"));
      figure.append(caption, make("div"));
      figure.setAttribute("role", "group");
      $(".charts").append(figure);
      chart = { title, names: there, figure, plot: chartOf([title, there, kind[2]], figure) };
      charts.push(chart);
    }
    chart.plot.setData([session.times, ...chart.names.map((name) => session.columns[name])]);
    const last = chart.names.map((name) => `${NAMES[name]} ${kind[2](session.columns[name].at(-1) ?? 0)}`).join(", ");
    chart.figure.setAttribute("aria-label", `${title}: ${last}`);
  }
}

new ResizeObserver(() => {
  for (const chart of charts) chart.plot.setSize({ width: chart.figure.clientWidth, height: 160 });
}).observe(live);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());

function draw(look) {
  if (live.dataset.running && look.state !== "running") {
    $("#said").textContent = `It is over: ${look.verdict || look.state}.`;
    setTimeout(() => location.reload(), 400);
  }
  drawProgress(look);
  drawFigures(look);
  drawCounts(look.counts);
  addSteps(look.steps);
  if (look.session) {
    drawAgents(look.session.now.agents);
    drawCharts(look.session);
  }
}

// A hidden page keeps no connection; one that comes back begins anew.
let events = null;
function listen() {
  events?.close();
  events = null;
  if (document.hidden) return;
  events = new EventSource(`/events?run=${encodeURIComponent(live.dataset.run)}`);
  events.onopen = () => {
    $("#said").textContent = "";
    for (const list of [steps, faults]) list.length = 0; // the first look tells everything
    $("#strip").replaceChildren();
  };
  events.onerror = () => ($("#said").textContent = "Not connected, trying again.");
  events.onmessage = (event) => {
    const look = JSON.parse(event.data);
    draw(look);
    if (!live.dataset.running && !look.more) events.close();
  };
}
document.addEventListener("visibilitychange", listen);
listen();
