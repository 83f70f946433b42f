// What both drivers have in common: the words of the command line and the last line.

/** `fill N` or `drain [KEY=VALUE…]`; the database is named by the PG* environment variables. */
export function words(defaults) {
  const [mode, ...rest] = process.argv.slice(2);
  if (mode === "fill" && /^[1-9]\d*$/.test(rest[0] ?? "") && rest.length === 1) {
    return { fill: Number(rest[0]) };
  }
  if (mode !== "drain") throw new Error("usage: fill N | drain [KEY=VALUE…]");
  const set = { ...defaults };
  for (const word of rest) {
    const [, key, value] = /^(\w+)=(-?\d+)$/.exec(word) ?? [];
    if (!(key in defaults)) throw new Error(`${word}: no such setting, or not a number`);
    set[key] = Number(value);
  }
  return { drain: set };
}

/** Parts of at most ten thousand. */
export function* parts(total) {
  for (let left = total; left > 0; left -= 10_000) yield Math.min(left, 10_000);
}

/** Ends in order at SIGTERM and says how many jobs the handler saw. */
export function endOnTerm(stop, handled) {
  process.once("SIGTERM", async () => {
    await stop();
    console.log(`handled ${handled()}`);
    process.exit(0);
  });
}
