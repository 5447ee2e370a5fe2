/** Extracts the text that people read from TypeScript files: comments, test titles, messages and labels. */
import ts from 'typescript-5-4'

export type Prose = {
  /** `name`: a declared function, variable, parameter or type. */
  readonly kind: 'comment' | 'title' | 'string' | 'jsx' | 'name'
  readonly text: string
  readonly line: number
}

type Span = {
  readonly kind: Prose['kind'] | 'code'
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Full title of a test: the names of its `describe` blocks and its own, joined by `: `. */
type Title = { readonly start: number; readonly text: string }

const titleCall = /^(test|it|describe)(\.|$)/

/** Returns the prose of one file in the order of the text. `titles` holds each test once, under its full title. */
export function extractProse(path: string, text: string): Prose[] {
  const kind = path.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, false, kind)
  const spans: Span[] = []
  const titles: Title[] = []

  const visit = (node: ts.Node, blocks: readonly string[]) => {
    if (ts.isCallExpression(node) && titleCall.test(text.slice(node.expression.getStart(file), node.expression.end))) {
      const title = findTitle(node)
      if (title !== null) {
        const isBlock = text.startsWith('describe', node.expression.getStart(file))
        if (!isBlock) titles.push({ start: node.getStart(file), text: [...blocks, title].join(': ') })
        const inner = isBlock ? [...blocks, title] : blocks
        for (const [index, argument] of node.arguments.entries())
          if (index === 0) markLiterals(argument, 'code')
          else visit(argument, inner)
        return
      }
    }
    if (isClassAttribute(node)) {
      mark(node, 'code', '')
      return
    }
    if (declaresName(node) && node.name !== undefined && ts.isIdentifier(node.name))
      mark(node.name, 'name', node.name.text)
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) markLiterals(node, 'string')
    else if (ts.isRegularExpressionLiteral(node)) mark(node, 'code', '')
    else if (ts.isJsxText(node)) mark(node, 'jsx', node.text)
    if (!ts.isTemplateExpression(node)) ts.forEachChild(node, child => visit(child, blocks))
    else for (const span of node.templateSpans) visit(span.expression, blocks)
  }

  const mark = (node: ts.Node, as: Span['kind'], content: string) =>
    spans.push({ kind: as, start: ts.isJsxText(node) ? node.pos : node.getStart(file), end: node.end, text: content })

  /** Marks a literal; a template counts as one text with `…` for its values. */
  const markLiterals = (node: ts.Node, as: Span['kind']) => {
    if (ts.isStringLiteralLike(node)) mark(node, as, node.text)
    else if (ts.isTemplateExpression(node)) {
      mark(node.head, as, [node.head.text, ...node.templateSpans.map(span => span.literal.text)].join('…'))
      for (const { literal } of node.templateSpans) mark(literal, 'code', '')
    }
  }

  visit(file, [])
  return [...spans.filter(({ kind: of }) => of !== 'code'), ...comments(text, spans), ...titles.map(asTitle)]
    .sort((a, b) => a.start - b.start)
    .map(lineCounter(text))
}

const declaresName = (node: ts.Node) =>
  ts.isVariableDeclaration(node) ||
  ts.isParameter(node) ||
  ts.isBindingElement(node) ||
  ts.isFunctionDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isInterfaceDeclaration(node)

/** Names of style classes are no text. */
const isClassAttribute = (node: ts.Node) =>
  ts.isJsxAttribute(node) && ts.isIdentifier(node.name) && node.name.text === 'class'

const asTitle = ({ start, text }: Title): Span => ({ kind: 'title', start, end: start, text })

function findTitle(call: ts.CallExpression): string | null {
  const [first] = call.arguments
  if (first === undefined) return null
  if (ts.isStringLiteralLike(first)) return first.text
  if (ts.isTemplateExpression(first))
    return [first.head.text, ...first.templateSpans.map(span => span.literal.text)].join('…')
  return null
}

/** Finds comments in the gaps between literals, where `//` cannot be anything else. Joins consecutive line comments. */
function comments(text: string, literals: readonly Span[]): Span[] {
  const found: Span[] = []
  const ordered = [...literals].sort((a, b) => a.start - b.start)
  let from = 0
  for (const { start, end } of [...ordered, { start: text.length, end: text.length }]) {
    for (const match of text.slice(from, start).matchAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*/g)) {
      const at = from + match.index
      found.push({ kind: 'comment', start: at, end: at + match[0].length, text: plainComment(match[0]) })
    }
    from = Math.max(from, end)
  }
  return found
}

const plainComment = (text: string) =>
  text
    .replace(/^\/\*\*?|\*\/$/g, '')
    .replace(/^[ \t]*(\/\/|\*(?!\/)) ?/gm, '')
    .trim()

/** Creates a converter for ascending spans, which counts each line break once. */
function lineCounter(text: string): (span: Span) => Prose {
  let line = 1
  let at = 0
  return ({ kind, start, text: content }) => {
    for (; at < start; at++) if (text[at] === '\n') line++
    return { kind: kind === 'code' ? 'string' : kind, text: content, line }
  }
}
