/** What the lines of a message look like: prose, or material such as tables, logs, code, mails and data. */
import { isDigit } from '../code-units.ts'

/** Kinds of lines; those from `firstMaterial` on are material by their form. */
export const lineKinds = { blank: 0, prose: 1, heading: 2, list: 3, code: 4, data: 5, quote: 6, mail: 7 } as const
type LineKind = (typeof lineKinds)[keyof typeof lineKinds]

/** Returns true for a kind that is material by its form. */
export function isMaterialLine(kind: number): boolean {
  return kind >= lineKinds.code
}

const { blank, prose, heading, list, code, data, quote, mail } = lineKinds

/** Bounds what is read of a line. */
const longestLook = 240

const [tab, space, quotation, hash, open, close] = [9, 32, 34, 35, 40, 41]
const [comma, hyphen, dot, slash, colon, semicolon, less] = [44, 45, 46, 47, 58, 59, 60]
const [equals, more, question, opens, closes, brace, bar, closingBrace] = [61, 62, 63, 91, 93, 123, 124, 125]
const wideColon = 0xff1a

/** The units that `readMarks` counts. */
const isMark = new Uint8Array(128)
for (const unit of [tab, space, quotation, open, close, comma, hyphen, dot, colon, semicolon, equals, question, brace])
  isMark[unit] = 1

/** What the line that was read last has, counted in one pass. `tight`: commas without a blank behind them. */
let [spaces, semicolons, tabs, bars, tight, firstSpace, firstColon, signs] = [0, 0, 0, 0, 0, -1, -1, 0]

/** Bits of `signs`; `program` is in no prose. `dotEnd` and `clauseEnd` have a blank behind them. */
const sign = { program: 1, opens: 2, dot: 4, dotEnd: 8, clauseEnd: 16, quotation: 32, wideColon: 64 } as const

function readMarks(text: string, from: number, to: number): void {
  spaces = 0
  semicolons = 0
  tabs = 0
  bars = 0
  tight = 0
  firstSpace = -1
  firstColon = -1
  signs = 0
  /** Where the last ` | ` ended: the next one shares no blank with it. */
  let barEnd = from
  for (let at = from; at < to; at++) {
    const unit = text.charCodeAt(at)
    if (unit === wideColon) signs |= sign.wideColon
    if (unit > 127 || isMark[unit] === 0) continue
    const next = at + 1 < to ? text.charCodeAt(at + 1) : 0
    if (unit === space) {
      if (spaces++ === 0) firstSpace = at - from
      if (next === bar && at >= barEnd && at + 2 < to && text.charCodeAt(at + 2) === space) {
        bars++
        barEnd = at + 3
      }
    } else if (unit === comma) {
      if (next > space) tight++
      else if (next === space) signs |= sign.clauseEnd
    } else if (unit === dot) signs |= next === space ? sign.dot | sign.dotEnd : sign.dot
    else if (unit === colon) {
      if (firstColon === -1) firstColon = at - from
      if (next === colon) signs |= sign.program
    } else if (unit === open) signs |= next === close ? sign.program | sign.opens : sign.opens
    else if (unit === close) signs |= next === semicolon || (next === colon && at + 2 === to) ? sign.program : 0
    else if (unit === hyphen) signs |= next === more ? sign.program : 0
    else if (unit === question) signs |= next === space ? sign.clauseEnd : 0
    else if (unit === semicolon) semicolons += next === space ? 1 : 0
    else if (unit === tab) tabs++
    else signs |= unit === quotation ? sign.quotation : sign.program
  }
}

/** Whether the line of prose that was read last may begin with a label. */
export function mayBeLabeled(): boolean {
  return firstColon !== -1 || (signs & sign.wideColon) !== 0
}

/** Returns the kind of a line that begins at `from` with its first character at `start`. Reads at most `longestLook`. */
export function getLineKind(text: string, from: number, start: number, to: number): LineKind {
  let end = to
  while (end > start && text.charCodeAt(end - 1) <= space) end--
  if (start === end) return blank
  const first = text.charCodeAt(start)
  const last = text.charCodeAt(end - 1)
  const second = start + 1 < to ? text.charCodeAt(start + 1) : 0
  if (first === more) return quote
  if (first === bar) return data
  if (first === hash && (second === space || second === hash)) return heading
  if (first === less && last === more) return code
  const lookEnd = Math.min(end, start + longestLook)
  if (isRuled(text, start, lookEnd)) return heading
  readMarks(text, start, lookEnd)
  if (isMailField(text, start)) return mail
  if (isRecord(text, start, lookEnd)) return data
  if (isCode(text, start, lookEnd, last, start - from)) return code
  return isAt(listItem, text, start) ? list : prose
}

/** `----`, `====`: under a heading or between parts. */
function isRuled(text: string, from: number, to: number): boolean {
  const first = text.charCodeAt(from)
  if (to - from < 3 || !isRule.has(first)) return false
  for (let at = from; at < to; at++) {
    const unit = text.charCodeAt(at)
    if (unit !== first && unit !== space) return false
  }
  return true
}

const isRule = new Set(Array.from('-=*_', mark => mark.charCodeAt(0)))

/** Fields of a mail's head. */
const mailFields = new Set(
  'from to cc bcc subject date sent reply-to received message-id von an betreff gesendet datum de para asunto fecha à objet от кому тема 发件人 收件人 主题 日期 件名 差出人 宛先'.split(
    ' ',
  ),
)
const levels = 'info|warn|warning|error|debug|trace|fatal|notice|critical'
const bracketedLevel = new RegExp(`\\[(?:\\d|(?:${levels})\\])`, 'iy')
/** A JSON array of objects, arrays or texts. */
const arrayStart = /\[\s*(?:[{[]|"[^"]{0,200}"\s*[,\]])/y
const longestLevel = 'critical'.length
const capitalLevel = new RegExp(`(?:${levels.toUpperCase()}):? `, 'y')

function isMailField(text: string, from: number): boolean {
  return (
    firstColon > 0 &&
    firstColon < 16 &&
    text.charCodeAt(from + firstColon + 1) === space &&
    mailFields.has(text.slice(from, from + firstColon).toLowerCase())
  )
}

/** A log line, a row of fields, or JSON. */
function isRecord(text: string, from: number, to: number): boolean {
  const first = text.charCodeAt(from)
  if (first === brace || first === closingBrace || first === closes) return true
  if (first === opens && (isAt(arrayStart, text, from) || isAt(bracketedLevel, text, from))) return true
  if (first === quotation && text.slice(from, to).includes('":')) return true
  if (isDigit(first) && isStamp(text, from, to)) return true
  if (first >= 65 && first <= 90 && firstColon > 0 && firstColon <= longestLevel && isAt(capitalLevel, text, from))
    return true
  // Cells between semicolons, tabs, bars, or commas without a blank behind them.
  return semicolons >= 3 || tabs >= 2 || bars >= 2 || tight >= 3
}

function isAt(expression: RegExp, text: string, from: number): boolean {
  expression.lastIndex = from
  return expression.test(text)
}

/** `2026-03-10`, `10.03.2026`, `08:15:07`. */
function isStamp(text: string, from: number, to: number): boolean {
  let digits = 0
  let separators = 0
  for (let at = from; at < Math.min(to, from + 10); at++) {
    const unit = text.charCodeAt(at)
    if (isDigit(unit)) digits++
    else if (unit === hyphen || unit === colon || unit === dot || unit === slash) separators++
    else break
  }
  return digits >= 4 && separators >= 2
}

const codeStarts = new Set(
  'import export const let var function class def return if(  for( while( public private protected static package using namespace #include #define struct enum interface type async await try{ catch elif else: @@ diff --- +++ index fn func impl pub use SELECT INSERT UPDATE DELETE CREATE FROM WHERE JOIN $ // /* */ * /** <!-- <?php at'.split(
    ' ',
  ),
)

/** Openings of a comment, and of a part of a diff. */
const codeOpenings = ['//', '/*', '@@ ', 'diff --git', '+++ ', '--- ']

/** A statement, a comment, a line of a diff or of a stack. `last` is the last unit of the whole line. */
function isCode(text: string, from: number, to: number, last: number, indent: number): boolean {
  if ((last === semicolon || last === brace) && (indent > 0 || !isSentence())) return true
  const hasSigns = hasProgramSigns()
  const first = text[from] ?? ''
  if ('/@d+-'.includes(first)) {
    if (codeOpenings.some(opening => text.startsWith(opening, from) && from + opening.length <= to)) return true
    const isChange = (first === '+' || first === '-') && to - from > 1
    if (isChange && hasSigns && !' \t'.includes(text[from + 1] ?? '')) return true
  }
  if (indent > 0 && isAt(stackLine, text, from)) return (signs & (sign.opens | sign.quotation)) !== 0
  if ((first === 'f' || first === 'F') && isAt(pythonImport, text, from)) return true
  if (!hasSigns) return false
  return indent >= 2 || isCodeStart(text.slice(from, firstSpace === -1 ? to : from + firstSpace))
}

/** Lines of a stack: `at read (file.ts:1:2)`, `File "read.py", line 1`. */
const stackLine = /(?:at|AT) |file "/iy
const pythonImport = /from .{1,200}? import |FROM .{1,200}? IMPORT /y

/** Code in capitals is code. One capital begins a sentence: `Use next() …`. */
function isCodeStart(word: string): boolean {
  return codeStarts.has(word) || (word === word.toUpperCase() && codeStarts.has(word.toLowerCase()))
}

/** A line of a dozen words with a full stop, question mark or comma between them. */
function isSentence(): boolean {
  return spaces >= 10 && (signs & (sign.dotEnd | sign.clauseEnd)) !== 0
}

/** Signs of programs, which prose does not have: `=`, `{`, `()`, `::`, `->`, or a bracket and a dot within a word. */
function hasProgramSigns(): boolean {
  const within = sign.opens | sign.dot
  return (signs & sign.program) !== 0 || (signs & (within | sign.dotEnd)) === within
}

/** A bullet or a number, a blank, and something behind it. */
const listItem = /(?:[-*•–]|\d{1,3}[.)]) [^\S\n]*\S/y
