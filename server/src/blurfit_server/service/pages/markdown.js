// The privacy statement's Markdown as elements: headings, paragraphs, lists, tables, **bold** and
// `code`. Nothing that it says can become markup of another kind.

import { h } from "./page.js";

export function markdown(text) {
  const blocks = text.trim().split(/\n\s*\n/);
  return blocks.map((block) => element(block.trim())).filter((one) => one !== null);
}

function element(block) {
  if (block === "") return null;
  const heading = /^(#{1,3}) (.*)$/s.exec(block);
  if (heading) return h(`h${heading[1].length + 1}`, {}, inline(heading[2]));
  if (block.startsWith("|")) return table(block);
  if (block.startsWith("- ")) {
    return h("ul", block.slice(2).split(/\n- /).map((item) => h("li", inline(item))));
  }
  return h("p", inline(block));
}

function table(block) {
  const cellsOf = (row) => row.split("|").slice(1, -1).map((cell) => cell.trim());
  const isRule = (cells) => cells.every((cell) => /^-*$/.test(cell));
  const rows = block.split("\n").map(cellsOf).filter((cells) => !isRule(cells));
  const told = ([name, ...cells]) =>
    h("tr", h("th", { scope: "row" }, inline(name)), cells.map((cell) => h("td", inline(cell))));
  return h("table", h("tbody", rows.map(told)));
}

/** Names come with a backslash before whatever Markdown could interpret. */
const plain = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, "$1");

function inline(text) {
  return text
    .replace(/\s*\n\s*/g, " ")
    .split(/(\*\*.+?\*\*|`[^`]+`)/)
    .map((part) => {
      if (part.startsWith("**") && part.length > 4) return h("strong", plain(part.slice(2, -2)));
      if (part.startsWith("`") && part.length > 2) return h("code", part.slice(1, -1));
      return plain(part);
    });
}
