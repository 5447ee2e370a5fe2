import type { TypeWords } from './language.ts'

export const germanic = {
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
        format: 'a complete text, ready to use.',
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
        format: 'ein vollständiger Text, fertig zum Gebrauch.',
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
  nl: {
    labels: {
      audience: 'Lezer',
      format: 'Vorm',
      scope: 'Omvang',
      constraints: 'Voorwaarden',
      steps: 'Stappen',
      check: 'Controle',
    },
    lines: {
      code: {
        format: 'werkende code met korte toelichting en gebruik.',
        constraints: 'geen onnodige afhankelijkheden; vang fouten af.',
      },
      code_algorithm: {
        format: 'eerst kort het idee, dan de code.',
        constraints: 'noem de tijd- en geheugencomplexiteit.',
        check: 'loop een klein voorbeeld door.',
      },
      debugging: {
        steps: 'de waarschijnlijke oorzaak, dan de kleinste oplossing.',
        format: 'de verbeterde code.',
        check: 'hoe je nagaat dat het werkt.',
      },
      analysis: {
        scope: 'de belangrijkste factoren en wat ertegen pleit.',
        format: 'korte alinea’s met een conclusie.',
      },
      writing: {
        audience: 'een toon die bij de lezer past.',
        format: 'een volledige tekst, klaar voor gebruik.',
        constraints: 'helder en bondig.',
      },
      math: {
        steps: 'laat elke stap en de gebruikte regel zien.',
        format: 'het eindantwoord op een eigen regel.',
        check: 'controleer het resultaat.',
      },
      creative: {
        format: 'een afgerond stuk met een begin en een einde.',
        constraints: 'levendige, concrete details; een vaste toon.',
      },
      planning: {
        steps: 'op volgorde, elk met het doel ervan.',
        scope: 'noem aannames over tijd en middelen.',
        check: 'benoem de risico’s.',
      },
      comparison: {
        format: 'een tabel, dan een korte aanbeveling.',
        scope: 'de criteria die ertoe doen bij de keuze.',
      },
    },
  },
} as const satisfies Readonly<Record<string, TypeWords>>
