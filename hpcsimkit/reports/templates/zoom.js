// Draws a schedule on a canvas; wheel, pointer and keys move the view and tell the data of a job.
(async () => {
  const root = document.getElementById("zoom"), data = JSON.parse(document.getElementById("zoom-data").textContent);
  const canvas = root.querySelector("canvas"), tip = root.querySelector("output"), select = root.querySelector("select");
  const unpack = async (text, type) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new type(await new Response(stream).arrayBuffer());
  };
  const jobs = {};
  for (const name of ["id", "submit", "size", "user"]) jobs[name] = await unpack(data.jobs[name], Float64Array);
  const left = data.names ? 84 : 52, bottom = 22;
  const copy = document.createElement("canvas");
  let shown, drawn, from, to, low, high, hit = -1;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name);
  const date = (second) => data.start === null ? `${second} s` : new Date(1000 * (data.start + second)).toLocaleString(
    "en-GB", { timeZone: data.zone || "UTC", dateStyle: "medium", timeStyle: "medium" });
  const length = (seconds) => {
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]])
      if (seconds >= size) return `${+(seconds / size).toPrecision(3)} ${unit}`;
    return `${seconds} s`;
  };
  const width = () => canvas.clientWidth - left, height = () => canvas.clientHeight - bottom;
  const x = (time) => left + (time - from) / (to - from) * width();
  const upright = (share) => data.names ? share : 1 - share;  // machines from the top, numbers of nodes from the bottom
  const y = (place) => upright((place - low) / (high - low)) * height();

  function fill(context, k) {
    const a = shown.begin[shown.job[k]], b = shown.end[shown.job[k]];
    if (b < from || a > to || shown.high[k] < low || shown.low[k] > high) return;
    const top = Math.min(y(shown.low[k]), y(shown.high[k]));
    const across = Math.max(x(b) - x(a), 1), down = Math.max(Math.abs(y(shown.high[k]) - y(shown.low[k])), 0.5);
    context.fillRect(x(a), top, across, down);
    if (across > 4 && down > 3) context.strokeRect(x(a), top, across, down);
  }

  function mark() {  // the job under the pointer, on a copy of the picture: a drawing of all jobs takes longer
    const context = canvas.getContext("2d");
    context.save(); context.setTransform(1, 0, 0, 1, 0, 0); context.drawImage(copy, 0, 0); context.restore();
    context.save();
    context.beginPath(); context.rect(left, 0, width(), height()); context.clip();
    context.fillStyle = colour("ink");
    if (hit >= 0) for (let k = 0; k < shown.job.length; k++) if (shown.job[k] === hit) fill(context, k);
    context.restore();
  }

  function draw() {
    const scale = devicePixelRatio, context = canvas.getContext("2d");
    canvas.width = canvas.clientWidth * scale; canvas.height = canvas.clientHeight * scale;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.save();
    context.beginPath(); context.rect(left, 0, width(), height()); context.clip();
    context.strokeStyle = colour("paper"); context.lineWidth = 0.5;
    ["ready", "reserved", "backfilled"].forEach((mode, number) => {
      context.fillStyle = colour(mode);
      for (let k = 0; k < shown.job.length; k++) if (shown.mode[shown.job[k]] === number + 1) fill(context, k);
    });
    context.restore();
    context.fillStyle = colour("muted"); context.font = "11px system-ui, sans-serif"; context.textBaseline = "middle";
    context.textAlign = "right";
    const rows = Math.max(1, Math.ceil((high - low) / (height() / 16)));
    for (let row = Math.ceil(low / rows) * rows; row < high; row += rows)
      context.fillText(data.names ? data.names[row] : row, left - 6, y(data.names ? row + 0.5 : row), left - 8);
    const ticks = Math.max(2, Math.floor(width() / 190));
    for (let k = 0; k < ticks; k++) {
      const time = from + (to - from) * k / ticks;
      context.textAlign = "left"; context.fillText(date(Math.round(time)), x(time) + 3, height() + 12);
      context.fillRect(x(time), height(), 1, 5);
    }
    copy.width = canvas.width; copy.height = canvas.height;
    copy.getContext("2d").drawImage(canvas, 0, 0);
    mark();
  }

  function zoom(factor, time, place) {
    const span = Math.min(Math.max((to - from) * factor, 10), data.end - data.begin);
    const rows = Math.min(Math.max((high - low) * factor, 1), data.size);
    from = Math.min(Math.max(time - (time - from) / (to - from) * span, data.begin), data.end - span);
    low = Math.min(Math.max(place - (place - low) / (high - low) * rows, 0), data.size - rows);
    to = from + span; high = low + rows;
    draw();
  }

  function point(event) {
    const box = canvas.getBoundingClientRect(), time = from + (event.clientX - box.left - left) / width() * (to - from);
    return [time, low + upright((event.clientY - box.top) / height()) * (high - low)];
  }

  function jobAt([time, place]) {
    const slack = (to - from) / width();
    let found = -1;
    for (let k = 0; k < shown.job.length; k++) {
      const job = shown.job[k];
      if (shown.low[k] <= place && place < shown.high[k] && shown.begin[job] <= time
          && time <= Math.max(shown.end[job], shown.begin[job] + slack)) found = job;
    }
    return found;
  }

  function tell(job) {
    if (job === hit && tip.textContent) return;
    hit = job;
    const row = hit < 0 ? -1 : shown.row[hit];  // of the job; a job that was stopped has several attempts
    const user = hit < 0 || jobs.user[row] < 0 ? "" : `, user ${data.users ? data.users[jobs.user[row]] : jobs.user[row]}`;
    tip.textContent = hit < 0 ? `Point at a job. ${data.note}` : `Job ${jobs.id[row]}${user}, ${jobs.size[row]} ${jobs.size[row] === 1 ? data.unit.replace(/s$/, "") : data.unit}: submitted `
      + `${date(shown.submit[hit])}, started ${date(shown.begin[hit])} (${["", "ready", "reserved", "backfilled"][shown.mode[hit]]}`
      + `), waited ${length(shown.begin[hit] - shown.submit[hit])}, ran ${length(shown.end[hit] - shown.begin[hit])}.`;
    mark();
  }

  function next(step) {  // in the order of submission; the view moves to a job outside of it
    const last = shown.row.length - 1;
    let job = hit < 0 ? jobAt([(from + to) / 2, (low + high) / 2]) : hit + step;
    if (job < 0) job = shown.job.length ? shown.job[0] : -1;
    while (job >= 0 && job <= last && !drawn.has(job)) job += step;
    if (job < 0 || job > last) return;
    const k = shown.job.indexOf(job), time = (shown.begin[job] + shown.end[job]) / 2, place = (shown.low[k] + shown.high[k]) / 2;
    if (time < from || time > to || place < low || place > high) move(time - (from + to) / 2, place - (low + high) / 2);
    tell(job);
  }

  function move(across, down) {
    across = Math.min(Math.max(across, data.begin - from), data.end - to);
    down = Math.min(Math.max(down, -low), data.size - high);
    from += across; to += across; low += down; high += down;
    draw();
  }

  async function show() {
    const packed = data.policies[select.selectedIndex], columns = {};
    for (const name of ["row", "submit", "begin", "end", "mode", "job", "low", "high"]) columns[name] = await unpack(packed[name], Float64Array);
    shown = columns; drawn = new Set(columns.job);
    draw(); tip.textContent = ""; tell(-1);
  }

  data.policies.forEach((policy) => select.add(new Option(policy.name)));
  [from, to, low, high] = [data.window[0], data.window[1], 0, data.size];
  root.hidden = false;  // before the first drawing: a hidden canvas has no size
  await show();
  let grip = null;
  const all = () => { [from, to, low, high] = [data.begin, data.end, 0, data.size]; draw(); };
  const middle = (factor) => zoom(factor, (from + to) / 2, (low + high) / 2);
  const aside = (share) => move(share * (to - from), 0);
  const along = (share) => move(0, (data.names ? share : -share) * (high - low));
  const keys = {
    ArrowLeft: () => aside(-0.2), ArrowRight: () => aside(0.2), ArrowUp: () => along(-0.2), ArrowDown: () => along(0.2),
    "+": () => middle(0.5), "=": () => middle(0.5), "-": () => middle(2), 0: all, n: () => next(1), p: () => next(-1),
  };
  select.onchange = show;
  canvas.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault(); keys[event.key]();
  };
  canvas.onwheel = (event) => {  // a page that scrolls under the pointer is not caught
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault(); zoom(Math.exp(event.deltaY / 400), ...point(event));
  };
  canvas.onpointerdown = (event) => { grip = point(event); canvas.setPointerCapture(event.pointerId); };
  canvas.onpointerup = canvas.onpointercancel = () => { grip = null; };
  canvas.onpointermove = (event) => {
    const now = point(event);
    if (grip) move(grip[0] - now[0], grip[1] - now[1]);
    else tell(jobAt(now));
  };
  root.querySelectorAll("button").forEach((button) => {
    button.onclick = () => button.value === "0" ? all() : middle(+button.value);
  });
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
