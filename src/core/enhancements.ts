/**
 * What a terse prompt gains, by language and query type: labelled lines behind it, in the prompt's own language. Each says
 * how to answer, never what: no number, name or claim stands here. Together with the labels a set stays below 180
 * characters, so that a prompt of 61 characters still grows to no more than four times its length.
 */
import type { QueryType } from './chat.ts'

export type EnhancedType = Exclude<QueryType, 'other'>
export type Aspect = 'audience' | 'format' | 'scope' | 'constraints' | 'steps' | 'check'

type Language = {
  readonly labels: Readonly<Record<Aspect, string>>
  readonly lines: Readonly<Record<EnhancedType, Partial<Readonly<Record<Aspect, string>>>>>
}

export const enhancements: Readonly<Record<string, Language>> = {
  en: {
    labels: {
      audience: 'Audience',
      format: 'Format',
      scope: 'Scope',
      constraints: 'Constraints',
      steps: 'Steps',
      check: 'Check',
    },
    lines: {
      code: {
        format: 'runnable code with brief comments, then how to use it.',
        constraints: 'no needless dependencies; handle errors.',
        check: 'show an example run.',
      },
      code_algorithm: {
        format: 'the idea in brief, then the code.',
        constraints: 'state time and space complexity.',
        check: 'trace a small example and the edge cases.',
      },
      debugging: {
        steps: 'name the likely cause, then the smallest fix.',
        format: 'the corrected code or commands.',
        check: 'say how to confirm that it works.',
      },
      analysis: {
        scope: 'the main factors, and what speaks against them.',
        format: 'short sections with a conclusion.',
        check: 'tell fact from assumption.',
      },
      writing: {
        audience: 'match the occasion and its reader.',
        format: 'a complete text, ready to send.',
        constraints: 'clear and concise; placeholders for unknown details.',
      },
      math: {
        steps: 'show each step and name the rule it uses.',
        format: 'the final answer on its own line.',
        check: 'verify the result another way.',
      },
      creative: {
        format: 'a finished piece with a beginning and an ending.',
        constraints: 'vivid, concrete details; no clichés; one consistent tone.',
      },
      planning: {
        steps: 'in order, each with its aim.',
        scope: 'state assumptions about time, budget and means.',
        check: 'name the risks and how to notice them.',
      },
      comparison: {
        format: 'a table, then a short recommendation.',
        scope: 'the criteria that matter for the decision.',
        constraints: 'say when each choice fits better.',
      },
    },
  },
  es: {
    labels: {
      audience: 'Público',
      format: 'Formato',
      scope: 'Alcance',
      constraints: 'Restricciones',
      steps: 'Pasos',
      check: 'Comprobación',
    },
    lines: {
      code: {
        format: 'código ejecutable con comentarios breves y su uso.',
        constraints: 'sin dependencias innecesarias; controla los errores.',
      },
      code_algorithm: {
        format: 'la idea en breve y después el código.',
        constraints: 'indica la complejidad en tiempo y espacio.',
        check: 'sigue un ejemplo pequeño.',
      },
      debugging: {
        steps: 'causa probable y después el arreglo más pequeño.',
        format: 'el código corregido.',
        check: 'cómo confirmar que funciona.',
      },
      analysis: {
        scope: 'los factores principales y lo que los contradice.',
        format: 'secciones cortas con una conclusión.',
      },
      writing: {
        audience: 'adapta el texto a su lector.',
        format: 'un texto completo, listo para enviar.',
        constraints: 'claro y conciso.',
      },
      math: {
        steps: 'muestra cada paso y la regla que usa.',
        format: 'el resultado final en su propia línea.',
        check: 'verifica el resultado.',
      },
      creative: {
        format: 'una pieza acabada, con principio y final.',
        constraints: 'detalles vivos y concretos; un tono coherente.',
      },
      planning: {
        steps: 'en orden, cada uno con su objetivo.',
        scope: 'indica los supuestos de tiempo y medios.',
        check: 'nombra los riesgos.',
      },
      comparison: {
        format: 'una tabla y una breve recomendación.',
        scope: 'los criterios que importan para decidir.',
      },
    },
  },
  fr: {
    labels: {
      audience: 'Public',
      format: 'Format',
      scope: 'Périmètre',
      constraints: 'Contraintes',
      steps: 'Étapes',
      check: 'Vérification',
    },
    lines: {
      code: {
        format: 'du code exécutable, commenté brièvement, puis son emploi.',
        constraints: 'pas de dépendance inutile ; gère les erreurs.',
      },
      code_algorithm: {
        format: 'l’idée en bref, puis le code.',
        constraints: 'indique la complexité en temps et en mémoire.',
        check: 'déroule un petit exemple.',
      },
      debugging: {
        steps: 'la cause probable, puis la plus petite correction.',
        format: 'le code corrigé.',
        check: 'comment confirmer que cela marche.',
      },
      analysis: {
        scope: 'les facteurs principaux et ce qui s’y oppose.',
        format: 'de courtes sections et une conclusion.',
      },
      writing: {
        audience: 'adapte le texte à son lecteur.',
        format: 'un texte complet, prêt à envoyer.',
        constraints: 'clair et concis.',
      },
      math: {
        steps: 'montre chaque étape et la règle utilisée.',
        format: 'le résultat final sur sa propre ligne.',
        check: 'vérifie le résultat.',
      },
      creative: {
        format: 'une œuvre achevée, avec un début et une fin.',
        constraints: 'des détails vivants et concrets ; un ton constant.',
      },
      planning: {
        steps: 'dans l’ordre, chacune avec son but.',
        scope: 'indique les hypothèses de temps et de moyens.',
        check: 'nomme les risques.',
      },
      comparison: {
        format: 'un tableau, puis une brève recommandation.',
        scope: 'les critères qui comptent pour décider.',
      },
    },
  },
  de: {
    labels: {
      audience: 'Zielgruppe',
      format: 'Format',
      scope: 'Umfang',
      constraints: 'Vorgaben',
      steps: 'Schritte',
      check: 'Prüfung',
    },
    lines: {
      code: {
        format: 'lauffähiger, kurz kommentierter Code, danach seine Verwendung.',
        constraints: 'keine unnötigen Abhängigkeiten; Fehler behandeln.',
      },
      code_algorithm: {
        format: 'kurz die Idee, dann der Code.',
        constraints: 'Zeit- und Speicheraufwand nennen.',
        check: 'ein kleines Beispiel durchgehen.',
      },
      debugging: {
        steps: 'wahrscheinliche Ursache, dann die kleinste Korrektur.',
        format: 'der berichtigte Code.',
        check: 'wie man den Erfolg bestätigt.',
      },
      analysis: {
        scope: 'die wichtigsten Einflüsse und was dagegen spricht.',
        format: 'kurze Abschnitte mit einem Fazit.',
      },
      writing: {
        audience: 'Ton passend zum Leser.',
        format: 'ein vollständiger Text, fertig zum Versenden.',
        constraints: 'klar und knapp.',
      },
      math: {
        steps: 'jeden Schritt mit der benutzten Regel zeigen.',
        format: 'das Ergebnis in einer eigenen Zeile.',
        check: 'das Ergebnis nachprüfen.',
      },
      creative: {
        format: 'ein fertiges Stück mit Anfang und Ende.',
        constraints: 'lebendige, greifbare Einzelheiten; ein einheitlicher Ton.',
      },
      planning: {
        steps: 'der Reihe nach, jeder mit seinem Ziel.',
        scope: 'Annahmen zu Zeit und Mitteln nennen.',
        check: 'Risiken benennen.',
      },
      comparison: {
        format: 'eine Tabelle, dann eine kurze Empfehlung.',
        scope: 'die Kriterien, auf die es ankommt.',
      },
    },
  },
  pt: {
    labels: {
      audience: 'Público',
      format: 'Formato',
      scope: 'Âmbito',
      constraints: 'Restrições',
      steps: 'Passos',
      check: 'Verificação',
    },
    lines: {
      code: {
        format: 'código executável com comentários breves e o seu uso.',
        constraints: 'sem dependências desnecessárias; trate os erros.',
      },
      code_algorithm: {
        format: 'a ideia em resumo e depois o código.',
        constraints: 'indique a complexidade de tempo e de espaço.',
        check: 'siga um exemplo pequeno.',
      },
      debugging: {
        steps: 'a causa provável e depois a menor correção.',
        format: 'o código corrigido.',
        check: 'como confirmar que funciona.',
      },
      analysis: {
        scope: 'os fatores principais e o que os contradiz.',
        format: 'seções curtas com uma conclusão.',
      },
      writing: {
        audience: 'adapte o texto ao leitor.',
        format: 'um texto completo, pronto para enviar.',
        constraints: 'claro e conciso.',
      },
      math: {
        steps: 'mostre cada passo e a regra usada.',
        format: 'o resultado final em linha própria.',
        check: 'verifique o resultado.',
      },
      creative: {
        format: 'uma peça acabada, com início e fim.',
        constraints: 'detalhes vivos e concretos; um tom coerente.',
      },
      planning: {
        steps: 'em ordem, cada um com o seu objetivo.',
        scope: 'indique as suposições de tempo e de meios.',
        check: 'aponte os riscos.',
      },
      comparison: {
        format: 'uma tabela e uma breve recomendação.',
        scope: 'os critérios que importam para decidir.',
      },
    },
  },
  it: {
    labels: {
      audience: 'Destinatari',
      format: 'Formato',
      scope: 'Ambito',
      constraints: 'Vincoli',
      steps: 'Passaggi',
      check: 'Verifica',
    },
    lines: {
      code: {
        format: 'codice eseguibile con brevi commenti e il suo uso.',
        constraints: 'nessuna dipendenza inutile; gestisci gli errori.',
      },
      code_algorithm: {
        format: 'l’idea in breve, poi il codice.',
        constraints: 'indica la complessità in tempo e spazio.',
        check: 'segui un piccolo esempio.',
      },
      debugging: {
        steps: 'la causa probabile, poi la correzione più piccola.',
        format: 'il codice corretto.',
        check: 'come confermare che funziona.',
      },
      analysis: {
        scope: 'i fattori principali e ciò che li contraddice.',
        format: 'brevi sezioni con una conclusione.',
      },
      writing: {
        audience: 'adatta il testo al lettore.',
        format: 'un testo completo, pronto da inviare.',
        constraints: 'chiaro e conciso.',
      },
      math: {
        steps: 'mostra ogni passaggio e la regola usata.',
        format: 'il risultato finale su una riga propria.',
        check: 'verifica il risultato.',
      },
      creative: {
        format: 'un’opera compiuta, con un inizio e una fine.',
        constraints: 'dettagli vivi e concreti; un tono coerente.',
      },
      planning: {
        steps: 'in ordine, ciascuno con il suo scopo.',
        scope: 'indica le ipotesi su tempo e mezzi.',
        check: 'nomina i rischi.',
      },
      comparison: {
        format: 'una tabella, poi una breve raccomandazione.',
        scope: 'i criteri che contano per decidere.',
      },
    },
  },
  ru: {
    labels: {
      audience: 'Читатель',
      format: 'Формат',
      scope: 'Охват',
      constraints: 'Условия',
      steps: 'Шаги',
      check: 'Проверка',
    },
    lines: {
      code: {
        format: 'рабочий код с краткими пояснениями и примером.',
        constraints: 'без лишних зависимостей; обработай ошибки.',
      },
      code_algorithm: {
        format: 'кратко идея, затем код.',
        constraints: 'укажи сложность по времени и памяти.',
        check: 'разбери небольшой пример.',
      },
      debugging: {
        steps: 'вероятная причина, затем самое малое исправление.',
        format: 'исправленный код.',
        check: 'как убедиться, что всё работает.',
      },
      analysis: {
        scope: 'главные причины и то, что им противоречит.',
        format: 'короткие разделы и вывод.',
      },
      writing: {
        audience: 'тон под читателя.',
        format: 'законченный текст, готовый к отправке.',
        constraints: 'ясно и кратко.',
      },
      math: {
        steps: 'покажи каждый шаг и правило.',
        format: 'ответ отдельной строкой.',
        check: 'проверь результат.',
      },
      creative: {
        format: 'законченное произведение с началом и концом.',
        constraints: 'живые подробности; единый тон.',
      },
      planning: {
        steps: 'по порядку, у каждого своя цель.',
        scope: 'укажи допущения о времени и средствах.',
        check: 'назови риски.',
      },
      comparison: {
        format: 'таблица, затем краткая рекомендация.',
        scope: 'признаки, важные для выбора.',
      },
    },
  },
  zh: {
    labels: { audience: '读者', format: '格式', scope: '范围', constraints: '要求', steps: '步骤', check: '检查' },
    lines: {
      code: { format: '可运行的代码，附简短注释和用法。', constraints: '不引入多余依赖，处理错误。' },
      code_algorithm: {
        format: '先简述思路，再给出代码。',
        constraints: '说明时间和空间复杂度。',
        check: '用小例子演算。',
      },
      debugging: {
        steps: '先说可能的原因，再给最小的修改。',
        format: '修正后的代码。',
        check: '说明如何确认有效。',
      },
      analysis: { scope: '主要因素以及相反的理由。', format: '分小节，最后给出结论。' },
      writing: { audience: '语气适合读者。', format: '完整、可直接使用的文本。', constraints: '清楚简洁。' },
      math: { steps: '写出每一步和所用的规则。', format: '最终答案单独一行。', check: '验证结果。' },
      creative: { format: '有开头有结尾的完整作品。', constraints: '细节生动具体，语气一致。' },
      planning: { steps: '按顺序列出，写明各步的目的。', scope: '说明对时间和条件的假设。', check: '指出风险。' },
      comparison: { format: '先列表格，再给简短建议。', scope: '对选择真正重要的标准。' },
    },
  },
  ja: {
    labels: { audience: '読者', format: '形式', scope: '範囲', constraints: '条件', steps: '手順', check: '確認' },
    lines: {
      code: {
        format: '短いコメント付きの動くコードと使い方。',
        constraints: '不要な依存を避け、エラーを処理すること。',
      },
      code_algorithm: {
        format: '考え方を短く述べてからコード。',
        constraints: '時間と空間の計算量を示すこと。',
        check: '小さな例で追うこと。',
      },
      debugging: {
        steps: '考えられる原因、次に最小の修正。',
        format: '修正後のコード。',
        check: '直ったことの確かめ方。',
      },
      analysis: { scope: '主な要因と、それに反する点。', format: '短い節に分け、結論を付ける。' },
      writing: {
        audience: '読み手に合った調子。',
        format: 'そのまま使える完成した文章。',
        constraints: '明快で簡潔に。',
      },
      math: { steps: '各段階と使う規則を示す。', format: '最終的な答えを独立した行に。', check: '結果を検算する。' },
      creative: {
        format: '始まりと終わりのある完成した作品。',
        constraints: '生き生きとした具体的な描写、一貫した調子。',
      },
      planning: {
        steps: '順番に、それぞれの目的も。',
        scope: '時間と手段についての前提を示す。',
        check: '危険を挙げる。',
      },
      comparison: { format: '表にまとめ、短い推薦を付ける。', scope: '判断に重要な基準。' },
    },
  },
}
