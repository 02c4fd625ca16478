// What the demo shows: a bar while it works, a table at the end.

const BAR_WIDTH = 40;

/** A progress bar on a terminal; elsewhere a line for every tenth. */
export class Bar {
  #terminal = process.stdout.isTTY === true;
  #tenth = -1;

  update(done, total, note) {
    const share = total === 0 ? 1 : done / total;
    const filled = Math.round(share * BAR_WIDTH);
    const bar = `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)}`;
    const line = `${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${note}`;
    if (this.#terminal) process.stdout.write(`\r\x1b[K${line}`);
    else if (Math.floor(share * 10) > this.#tenth) {
      this.#tenth = Math.floor(share * 10);
      process.stdout.write(`${line}\n`);
    }
  }

  /** A line of its own; the bar goes on below it. */
  say(text) {
    process.stdout.write(this.#terminal ? `\r\x1b[K${text}\n` : `${text}\n`);
  }
}

/** Rows under a heading; the columns named in `right` are numbers and stand to the right. */
export function table(heading, rows, right) {
  const cells = [heading, ...rows].map((row) => row.map(String));
  const widths = heading.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
  const lines = cells.map((row) =>
    row
      .map((cell, i) => (right.includes(i) ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join("  ")
      .trimEnd(),
  );
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}
