// Prints the score and the label of each row of a table, as `rocmax predict` does:
//
//     node score.js churn.onnx new.csv > scores.csv
//
// The table is a csv file, or a .json file with a list of objects. Columns are matched by name; others are not used.
"use strict";

const fs = require("fs");
const ort = require("onnxruntime-node");

const BATCH = 10000;
// What the reader of rocmax takes for a missing number, spaces around it aside.
const MISSING = new Set(["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]);
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

// Fields of a csv file, which may be quoted, with doubled quotes and line ends inside.
function parseCsv(text) {
  const rows = [];
  const field = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r\n|\n|\r|$)/y;
  let row = [];
  while (field.lastIndex < text.length || row.length) {
    const start = field.lastIndex;
    const found = field.exec(text);
    if (found === null) {
      throw new Error(`the table has a quote that does not enclose a field, at character ${start + 1}`);
    }
    row.push(found[1].startsWith('"') ? found[1].slice(1, -1).replaceAll('""', '"') : found[1]);
    if (found[2] === ",") continue;
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
    if (found[2] === "") break;
  }
  return rows;
}

function readTable(path) {
  const text = fs.readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  if (path.endsWith(".json")) {
    const rows = JSON.parse(text);
    if (!Array.isArray(rows)) throw new Error(`${path} must contain a list of objects`);
    return rows;
  }
  const [header, ...rows] = parseCsv(text);
  return rows.map((row, i) => {
    if (row.length !== header.length) {
      throw new Error(`row ${i + 1} must have ${header.length} fields, as the header has; got ${row.length}`);
    }
    return Object.fromEntries(header.map((name, place) => [name, row[place]]));
  });
}

function toNumber(value, place) {
  if (value === null || typeof value === "number") return value ?? NaN;
  const text = String(value).trim();
  if (MISSING.has(text)) return NaN;
  if (/^true$/i.test(text)) return 1;
  if (/^false$/i.test(text)) return 0;
  if (!NUMBER.test(text)) throw new Error(`${place} must be a number, or empty; got ${JSON.stringify(value)}`);
  return Number(text);
}

// A column of the graph, of shape (rows, 1): doubles, with NaN for missing values, or text, with "".
function tensor({ name, type }, rows, first) {
  const values = rows.map((row, i) => {
    const place = `row ${first + i + 1}: column '${name}'`;
    if (!Object.hasOwn(row, name)) throw new Error(`${place} is missing`);
    return type === "string" ? String(row[name] ?? "") : toNumber(row[name], place);
  });
  const data = type === "string" ? values : Float64Array.from(values);
  return new ort.Tensor(type, data, [rows.length, 1]);
}

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

async function main([graph, table]) {
  if (table === undefined) throw new Error("pass a graph and a table: node score.js model.onnx rows.csv");
  const session = await ort.InferenceSession.create(graph);
  const rows = readTable(table);
  const lines = ["score,label"];
  for (let first = 0; first < rows.length; first += BATCH) {
    const batch = rows.slice(first, first + BATCH);
    const inputs = session.inputMetadata.map((input) => [input.name, tensor(input, batch, first)]);
    const { score, label } = await session.run(Object.fromEntries(inputs));
    score.data.forEach((value, i) => lines.push(`${value},${quoted(label.data[i])}`));
  }
  fs.writeSync(1, lines.join("\n") + "\n");
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`Error: ${error.message}`);
  process.exitCode = 1;
});
