/** Preloaded into a process with a wrong clock: everything it reads of `Date` is `CLOCK_SHIFT_MS` ahead. */
const shiftMs = Number(process.env.CLOCK_SHIFT_MS)

globalThis.Date = new Proxy(Date, {
  construct: (real, given, target) =>
    Reflect.construct(real, given.length === 0 ? [real.now() + shiftMs] : given, target),
  get: (real, name) => (name === 'now' ? () => real.now() + shiftMs : Reflect.get(real, name)),
})
