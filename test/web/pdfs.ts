/** The smallest PDFs that readers accept: a page, a font, a line of text. */
import { deflateSync } from 'node:zlib'

/** Returns a PDF of 8 KB whose one page is 200 MB, compressed twice. */
export function pdfBomb(): Buffer {
  const packed = deflateSync(deflateSync(Buffer.from('BT /F1 24 Tf 72 700 Td (a) Tj ET\n'.repeat(6_400_000))))
  const [before = '', after = ''] = getPdf('', '/Filter [/FlateDecode /FlateDecode]', packed.length)
    .toString('latin1')
    .split('stream\n\n')
  return Buffer.concat([Buffer.from(`${before}stream\n`), packed, Buffer.from(`\n${after}`)])
}

/** Returns a PDF of one page that shows `text`. */
export function getPdf(text: string, filter = '', length?: number): Buffer {
  const content = text === '' ? '' : `BT /F1 24 Tf 72 700 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${length ?? content.length} ${filter} >>\nstream\n${content}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let body = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = body.length
    body += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const rows = offsets.map(offset => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`
  return Buffer.from(
    `${body}${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF\n`,
  )
}

export const minimalPdf = getPdf('The tide table of May')
