/** What the lines of a message look like: prose, or material such as tables, logs, code, mails and data. */

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

/** Returns the kind of a line by its first and last characters and its marks. Reads at most `longestLook` of them. */
export function getLineKind(text: string, from: number, to: number): LineKind {
  let start = from
  while (start < to && text.charCodeAt(start) <= 32) start++
  let end = to
  while (end > start && text.charCodeAt(end - 1) <= 32) end--
  if (start === end) return blank
  const first = text[start] ?? ''
  const last = text[end - 1] ?? ''
  if (first === '>') return quote
  if (first === '|') return data
  if (first === '#' && (text[start + 1] === ' ' || text[start + 1] === '#')) return heading
  if (first === '<' && last === '>') return code
  const line = text.slice(start, Math.min(end, start + longestLook))
  if (isRuled(line)) return heading
  if (isMailField(line)) return mail
  if (isRecord(line, first)) return data
  if (isCode(line, first, last, start - from)) return code
  if (isListItem(line, first)) return list
  return prose
}

/** `----`, `====`: under a heading or between parts. */
function isRuled(line: string): boolean {
  if (line.length < 3) return false
  const first = line[0] ?? ''
  if (first !== '-' && first !== '=' && first !== '*' && first !== '_') return false
  for (const character of line) if (character !== first && character !== ' ') return false
  return true
}

/** Fields of a mail's head. */
const mailFields = new Set(
  'from to cc bcc subject date sent reply-to received message-id von an betreff gesendet datum de para asunto fecha à objet от кому тема 发件人 收件人 主题 日期 件名 差出人 宛先'.split(
    ' ',
  ),
)
const logLevels = new Set('info warn warning error debug trace fatal notice critical'.split(' '))

function isMailField(line: string): boolean {
  const colon = line.indexOf(':')
  return colon > 0 && colon < 16 && line[colon + 1] === ' ' && mailFields.has(line.slice(0, colon).toLowerCase())
}

/** A log line, a row of fields, or JSON. */
function isRecord(line: string, first: string): boolean {
  if (isDigit(line.charCodeAt(0)) && isStamp(line)) return true
  if (first === '[' && (isDigit(line.charCodeAt(1)) || logLevels.has(line.slice(1, line.indexOf(']')).toLowerCase())))
    return true
  if (first === '{' || first === '}' || first === ']' || (first === '"' && line.includes('":'))) return true
  const space = line.indexOf(' ')
  const level = space > 0 && space < 10 ? line.slice(0, line[space - 1] === ':' ? space - 1 : space) : ''
  if (level === level.toUpperCase() && logLevels.has(level.toLowerCase())) return true
  return countMarks(line, '; ') >= 3 || countMarks(line, '\t') >= 2 || countMarks(line, ' | ') >= 2 || isCommaRow(line)
}

/** `2026-03-10`, `10.03.2026`, `08:15:07`. */
function isStamp(line: string): boolean {
  let digits = 0
  let marks = 0
  for (let at = 0; at < Math.min(line.length, 10); at++) {
    const unit = line.charCodeAt(at)
    if (isDigit(unit)) digits++
    else if (unit === 45 || unit === 58 || unit === 46 || unit === 47) marks++
    else break
  }
  return digits >= 4 && marks >= 2
}

/** Cells between commas without a blank behind them. */
function isCommaRow(line: string): boolean {
  let tight = 0
  for (let at = line.indexOf(','); at !== -1; at = line.indexOf(',', at + 1)) if (line.charCodeAt(at + 1) > 32) tight++
  return tight >= 3
}

function countMarks(line: string, mark: string): number {
  let count = 0
  for (let at = line.indexOf(mark); at !== -1; at = line.indexOf(mark, at + mark.length)) count++
  return count
}

const codeStarts = new Set(
  'import export const let var function class def return if(  for( while( public private protected static package using namespace #include #define struct enum interface type async await try{ catch elif else: @@ diff --- +++ index fn func impl pub use SELECT INSERT UPDATE DELETE CREATE FROM WHERE JOIN $ // /* */ * /** <!-- <?php at'.split(
    ' ',
  ),
)

/** A statement, a comment, a line of a diff or of a stack. */
function isCode(line: string, first: string, last: string, indent: number): boolean {
  if ((last === ';' || last === '{') && (indent > 0 || !isSentence(line))) return true
  if (first === '}' || line.startsWith('//') || line.startsWith('/*')) return true
  if (line.startsWith('@@ ') || line.startsWith('diff --git') || line.startsWith('+++ ') || line.startsWith('--- '))
    return true
  if ((first === '+' || first === '-') && line.length > 1 && !' \t'.includes(line[1] ?? '') && hasSigns(line))
    return true
  if (indent > 0 && (line.startsWith('at ') || line.startsWith('File "')))
    return line.includes('(') || line.includes('"')
  if (line.startsWith('from ') && line.includes(' import ')) return true
  const space = line.indexOf(' ')
  const word = space === -1 ? line : line.slice(0, space)
  if (codeStarts.has(word) && hasSigns(line)) return true
  return indent >= 2 && hasSigns(line)
}

/** A line of a dozen words with a full stop or question mark between them. */
function isSentence(line: string): boolean {
  return countMarks(line, ' ') >= 10 && (line.includes('. ') || line.includes('? ') || line.includes(', '))
}

/** Signs of programs, which prose does not have. */
function hasSigns(line: string): boolean {
  return (
    line.includes('=') ||
    line.includes('()') ||
    line.includes(');') ||
    line.includes('=>') ||
    line.includes('{') ||
    line.includes('::') ||
    line.endsWith('):') ||
    line.includes('->') ||
    (line.includes('(') && line.includes('.') && !line.includes('. '))
  )
}

function isListItem(line: string, first: string): boolean {
  if ('-*•–'.includes(first)) return line[1] === ' '
  let at = 0
  while (isDigit(line.charCodeAt(at))) at++
  return at > 0 && at < 4 && (line[at] === '.' || line[at] === ')') && line[at + 1] === ' '
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57
}
