"use strict";
const numbers = JSON.parse(document.getElementById("numbers").textContent);
const limit = document.getElementById("limit"), floor = document.getElementById("floor"), back = document.getElementById("back");
const total = numbers.positives + numbers.negatives;
const Z = 1.959963984540054;
const atSaved = document.getElementById("explored").textContent;
// What the table shows: the saved thresholds, or those of one of the sliders.
let shown = "saved";
const short = (x, digits) => String(Number((100 * x).toPrecision(digits)));
const percent = (x) => (100 * x).toFixed(2) + " %";
const cases = (x) => { const count = 10000 * x / total; return Number(count.toFixed(count < 10 ? 1 : 0)).toLocaleString("en"); };
function wilson(count, size) {
  const share = count / size, scale = 1 + Z * Z / size, center = (share + Z * Z / (2 * size)) / scale;
  const half = Z / scale * Math.sqrt(share * (1 - share) / size + Z * Z / (4 * size * size));
  return [Math.max(0, center - half), Math.min(1, center + half)];
}
function strong(text) { const node = document.createElement("strong"); node.textContent = text; return node; }
function sentence(points) {
  const byFloor = shown === "floor", several = points.length > 1;
  const positive = `class ${numbers.positive_label}`, negative = `class ${numbers.negative_label}`;
  const parts = byFloor
    ? ["To find at least ", strong(short(numbers.floors[floor.value], 4) + " of 100"), ` rows of ${positive}, `]
    : ["If at most ", strong(short(numbers.limits[limit.value], 3) + " %"), ` of ${negative} may be flagged, `];
  points.forEach((point, i) => {
    if (i > 0) parts.push(i === points.length - 1 ? " and " : ", ");
    const count = byFloor ? point.fp : point.tp, size = byFloor ? numbers.negatives : numbers.positives;
    const digits = byFloor ? (x) => short(x, 3) : (x) => String(Math.round(100 * x));
    const [low, high] = wilson(count, size);
    if (several) parts.push(`${numbers.models[i].name} ${byFloor ? "flags" : "finds"} `);
    parts.push(strong(digits(count / size) + (byFloor ? " %" : " of 100")));
    if (i === 0) parts.push(byFloor ? ` of ${negative}` : ` rows of ${positive}`);
    if (!several) parts.push(byFloor ? " are flagged" : " are found");
    parts.push(` (${digits(low)} to ${digits(high)})`);
  });
  const chosen = several ? "thresholds that are" : "a threshold that is";
  return [...parts, `, with ${chosen} chosen on these rows. Expect somewhat worse rates on new ones.`];
}
function cells(row, values) { row.querySelectorAll("td").forEach((cell, j) => { cell.textContent = values[j]; }); }
function show() {
  const limitText = "at most " + short(numbers.limits[limit.value], 3) + " %", floorText = "at least " + short(numbers.floors[floor.value], 4) + " %";
  document.getElementById("limit-text").textContent = limitText;
  document.getElementById("floor-text").textContent = floorText;
  limit.setAttribute("aria-valuetext", limitText);
  floor.setAttribute("aria-valuetext", floorText);
  limit.closest(".control").classList.toggle("idle", shown !== "limit");
  floor.closest(".control").classList.toggle("idle", shown !== "floor");
  const at = Number((shown === "floor" ? floor : limit).value);
  const points = numbers.models.map((model) => {
    if (shown === "saved") return model.saved;
    const source = model[shown];
    return { tp: source.tp[at], fp: source.fp[at], threshold: source.threshold[at] };
  });
  document.getElementById("explored").replaceChildren(...(shown === "saved" ? [atSaved] : sentence(points)));
  document.querySelectorAll(".shown-threshold").forEach((node) => { node.textContent = shown === "saved" ? "saved threshold" : "position of the slider"; });
  back.hidden = shown === "saved";
  const rows = document.querySelectorAll("#operating tbody tr"), matrices = document.querySelectorAll(".matrices table");
  points.forEach(({ tp, fp, threshold }, i) => {
    const fn = numbers.positives - tp, tn = numbers.negatives - fp, tpr = tp / numbers.positives, fpr = fp / numbers.negatives;
    const precision = tp + fp > 0 ? percent(tp / (tp + fp)) : "-";
    cells(rows[i], [threshold ?? "-", percent(tpr), percent(fpr), precision, cases(tp), cases(fn), cases(fp)]);
    cells(matrices[i], [cases(tp), cases(fn), cases(fp), cases(tn)]);
    numbers.panels.forEach((panel, p) => place(`circle[data-panel="${p}"][data-model="${i}"]`, panel, fpr, tpr));
    const scale = numbers.histograms[i], line = document.querySelector(`line.moving[data-model="${i}"]`);
    const x = scale.left + (threshold - scale.low) / (scale.high - scale.low) * (scale.right - scale.left);
    line.setAttribute("visibility", shown !== "saved" && threshold >= scale.low && threshold <= scale.high ? "visible" : "hidden");
    line.setAttribute("x1", x); line.setAttribute("x2", x);
  });
}
function place(selector, panel, fpr, tpr) {
  const mark = document.querySelector(selector);
  const inside = fpr >= panel.low && fpr <= panel.high && tpr >= panel.bottom_value && tpr <= panel.top_value;
  mark.setAttribute("visibility", inside ? "visible" : "hidden");
  mark.setAttribute("cx", panel.left + (fpr - panel.low) / (panel.high - panel.low) * (panel.right - panel.left));
  mark.setAttribute("cy", panel.bottom - (tpr - panel.bottom_value) / (panel.top_value - panel.bottom_value) * (panel.bottom - panel.top));
}
const alarm = document.getElementById("cost-alarm"), miss = document.getElementById("cost-miss"), ratio = document.getElementById("cost-ratio");
function price() {
  const prices = [alarm, miss].map((field) => Number(field.value));
  const valid = [alarm, miss].every((field) => field.value !== "" && field.validity.valid) && prices[0] + prices[1] > 0;
  document.getElementById("cost-error").hidden = valid;
  if (!valid) return;
  const alarms = prices[1] / prices[0];
  const ratioText = Number.isFinite(alarms) ? Number(alarms.toPrecision(2)).toLocaleString("en") + (alarms === 1 ? " false alarm" : " false alarms") : "any number of false alarms";
  document.getElementById("cost-ratio-text").textContent = ratioText;
  ratio.setAttribute("aria-valuetext", ratioText);
  const rows = document.querySelectorAll("#costs tbody tr");
  numbers.models.forEach((model, i) => {
    const costs = model.hull.fp.map((fp, j) => prices[0] * fp + prices[1] * (numbers.positives - model.hull.tp[j]));
    let best = 0;
    costs.forEach((cost, j) => { if (cost < costs[best]) best = j; });
    const tp = model.hull.tp[best], fp = model.hull.fp[best];
    const each = (cost) => Number((10000 * cost / total).toPrecision(4)).toLocaleString("en");
    cells(rows[i], [model.hull.threshold[best], percent(tp / numbers.positives), percent(fp / numbers.negatives), each(costs[best]),
      each(prices[1] * numbers.positives), each(prices[0] * numbers.negatives)]);
  });
}
limit.addEventListener("input", () => { shown = "limit"; show(); });
floor.addEventListener("input", () => { shown = "floor"; show(); });
back.addEventListener("click", () => { shown = "saved"; show(); limit.focus(); });
// The slider has a logarithmic scale, from a tenth of a false alarm to 1,000. Costs beyond it move it to its end.
[alarm, miss].forEach((field) => field.addEventListener("input", () => {
  const position = Math.min(60, Math.max(-20, 20 * Math.log10(Number(miss.value) / Number(alarm.value))));
  if (position >= -20) ratio.value = Math.round(position);  // not if a field is empty or negative
  price();
}));
ratio.addEventListener("input", () => {
  if (!(Number(alarm.value) > 0)) alarm.value = 1;
  miss.value = Number((Number(alarm.value) * 10 ** (ratio.value / 20)).toPrecision(2));
  price();
});
show();
alarm.dispatchEvent(new Event("input"));
