/** Which lines of a kernel's texts belong together. */

/** The places of the texts in a row of `links`. */
const PLACES = { scheduled: 0, lowered: 1, llvm_before: 2, llvm: 3, assembly: 4 };
const HUES = 8;

export class Links {
  constructor(rows) {
    this.rows = rows;
    this.index = {};
    const hues = new Map();
    this.hueOfRow = rows.map((row) => {
      const key = row[0] ? `s${row[0]}` : row[1] ? `l${row[1]}` : "";
      if (!key) return -1;
      if (!hues.has(key)) hues.set(key, hues.size % HUES);
      return hues.get(key);
    });
    for (const [column, place] of Object.entries(PLACES)) {
      const lines = new Map();
      rows.forEach((row, position) => {
        const line = row[place];
        if (!line) return;
        if (!lines.has(line)) lines.set(line, []);
        lines.get(line).push(position);
      });
      this.index[column] = lines;
    }
  }

  /** The colour's number of a line, -1 for a line that nothing belongs to. */
  hue(column, line) {
    const rows = this.index[column]?.get(line);
    return rows ? this.hueOfRow[rows[0]] : -1;
  }

  /**
   * The lines of every text that belong to a line of one: {column: sorted lines}.
   *
   * Instructions belong together if they come from the same line of the lowered program.
   */
  related(column, line) {
    const own = this.index[column]?.get(line) ?? [];
    const siblings = column === "scheduled" ? []
      : own.flatMap((position) => this.index.lowered.get(this.rows[position][1]) ?? []);
    const rows = [...new Set([...own, ...siblings])];
    const result = {};
    for (const [name, place] of Object.entries(PLACES)) {
      const lines = new Set(rows.map((position) => this.rows[position][place]).filter(Boolean));
      if (name === column) lines.add(line);
      result[name] = [...lines].sort((a, b) => a - b);
    }
    return result;
  }
}
