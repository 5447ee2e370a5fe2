import type { TypeWords } from './language.ts'

export const eastern = {
  tr: {
    labels: {
      audience: 'Okur',
      format: 'Biçim',
      scope: 'Kapsam',
      constraints: 'Koşullar',
      steps: 'Adımlar',
      check: 'Kontrol',
    },
    lines: {
      code: {
        format: 'kısa açıklamalı, çalışan kod ve kullanımı.',
        constraints: 'gereksiz bağımlılık olmasın; hataları ele al.',
      },
      code_algorithm: {
        format: 'önce kısaca fikir, sonra kod.',
        constraints: 'zaman ve bellek karmaşıklığını belirt.',
        check: 'küçük bir örneği adım adım izle.',
      },
      debugging: {
        steps: 'olası neden, ardından en küçük düzeltme.',
        format: 'düzeltilmiş kod.',
        check: 'çalıştığı nasıl doğrulanır.',
      },
      analysis: {
        scope: 'başlıca etkenler ve bunlara karşı görüşler.',
        format: 'kısa bölümler ve bir sonuç.',
      },
      writing: {
        audience: 'okura uygun bir üslup.',
        format: 'tamamlanmış, kullanıma hazır bir metin.',
        constraints: 'açık ve öz.',
      },
      math: {
        steps: 'her adımı ve kullanılan kuralı göster.',
        format: 'son cevap ayrı bir satırda.',
        check: 'sonucu doğrula.',
      },
      creative: {
        format: 'başı ve sonu olan, tamamlanmış bir eser.',
        constraints: 'canlı, somut ayrıntılar; tutarlı bir üslup.',
      },
      planning: {
        steps: 'sırayla, her biri amacıyla birlikte.',
        scope: 'zaman ve olanaklarla ilgili varsayımları belirt.',
        check: 'riskleri belirt.',
      },
      comparison: {
        format: 'bir tablo, ardından kısa bir öneri.',
        scope: 'karar için önemli olan ölçütler.',
      },
    },
  },
  ar: {
    labels: {
      audience: 'القارئ',
      format: 'الصيغة',
      scope: 'النطاق',
      constraints: 'الشروط',
      steps: 'الخطوات',
      check: 'التحقق',
    },
    lines: {
      code: {
        format: 'شيفرة قابلة للتشغيل مع تعليقات موجزة وطريقة الاستخدام.',
        constraints: 'دون اعتماديات غير ضرورية، مع معالجة الأخطاء.',
      },
      code_algorithm: {
        format: 'الفكرة بإيجاز، ثم الشيفرة.',
        constraints: 'اذكر التعقيد الزمني والمكاني.',
        check: 'تتبع مثالا صغيرا.',
      },
      debugging: {
        steps: 'السبب المرجح، ثم أصغر إصلاح.',
        format: 'الشيفرة المصححة.',
        check: 'كيفية التأكد من نجاح الإصلاح.',
      },
      analysis: {
        scope: 'العوامل الرئيسية وما يعارضها.',
        format: 'أقسام قصيرة مع خلاصة.',
      },
      writing: {
        audience: 'أسلوب يناسب القارئ.',
        format: 'نص كامل جاهز للاستعمال.',
        constraints: 'واضح وموجز.',
      },
      math: {
        steps: 'بيّن كل خطوة والقاعدة المستخدمة.',
        format: 'الإجابة النهائية في سطر مستقل.',
        check: 'تحقق من النتيجة.',
      },
      creative: {
        format: 'عمل مكتمل له بداية ونهاية.',
        constraints: 'تفاصيل حية وملموسة، ونبرة متسقة.',
      },
      planning: {
        steps: 'بالترتيب، ولكل خطوة هدفها.',
        scope: 'اذكر الافتراضات المتعلقة بالوقت والموارد.',
        check: 'اذكر المخاطر.',
      },
      comparison: {
        format: 'جدول، ثم توصية قصيرة.',
        scope: 'المعايير المهمة للاختيار.',
      },
    },
  },
  hi: {
    labels: {
      audience: 'पाठक',
      format: 'प्रारूप',
      scope: 'दायरा',
      constraints: 'शर्तें',
      steps: 'चरण',
      check: 'जाँच',
    },
    lines: {
      code: {
        format: 'छोटी टिप्पणियों वाला चलने योग्य कोड और उसका उपयोग।',
        constraints: 'अनावश्यक निर्भरता न हो; त्रुटियाँ सँभालें।',
      },
      code_algorithm: {
        format: 'पहले संक्षेप में विचार, फिर कोड।',
        constraints: 'समय और मेमोरी की जटिलता बताएँ।',
        check: 'एक छोटा उदाहरण समझाएँ।',
      },
      debugging: {
        steps: 'संभावित कारण, फिर सबसे छोटा सुधार।',
        format: 'सुधारा हुआ कोड।',
        check: 'कैसे पता चले कि समस्या हल हो गई।',
      },
      analysis: {
        scope: 'मुख्य कारण और उनके विरुद्ध तर्क।',
        format: 'छोटे खंड और अंत में निष्कर्ष।',
      },
      writing: {
        audience: 'पाठक के अनुरूप भाषा।',
        format: 'पूरा लेख, जो तुरंत काम आ सके।',
        constraints: 'स्पष्ट और संक्षिप्त।',
      },
      math: {
        steps: 'हर चरण और प्रयुक्त नियम दिखाएँ।',
        format: 'अंतिम उत्तर अलग पंक्ति में।',
        check: 'परिणाम की जाँच करें।',
      },
      creative: {
        format: 'आरंभ और अंत वाली पूरी रचना।',
        constraints: 'सजीव, ठोस विवरण; एक-सा लहजा।',
      },
      planning: {
        steps: 'क्रम से, हर चरण का उद्देश्य भी।',
        scope: 'समय और साधनों के बारे में मान्यताएँ बताएँ।',
        check: 'जोखिम बताएँ।',
      },
      comparison: {
        format: 'एक तालिका, फिर छोटा-सा सुझाव।',
        scope: 'चुनाव के लिए महत्वपूर्ण मानदंड।',
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
  ko: {
    labels: {
      audience: '독자',
      format: '형식',
      scope: '범위',
      constraints: '조건',
      steps: '단계',
      check: '확인',
    },
    lines: {
      code: {
        format: '짧은 주석이 있는 실행 가능한 코드와 사용법.',
        constraints: '불필요한 의존성 없이, 오류를 처리할 것.',
      },
      code_algorithm: {
        format: '먼저 아이디어를 간단히, 그다음 코드.',
        constraints: '시간 복잡도와 공간 복잡도를 밝힐 것.',
        check: '작은 예를 따라가 볼 것.',
      },
      debugging: {
        steps: '가능성 높은 원인, 그다음 가장 작은 수정.',
        format: '수정된 코드.',
        check: '해결되었는지 확인하는 방법.',
      },
      analysis: {
        scope: '주요 요인과 그에 반하는 점.',
        format: '짧은 절로 나누고 결론을 붙일 것.',
      },
      writing: {
        audience: '읽는 사람에게 맞는 어조.',
        format: '바로 쓸 수 있는 완성된 글.',
        constraints: '명확하고 간결하게.',
      },
      math: {
        steps: '각 단계와 사용한 규칙을 보일 것.',
        format: '최종 답은 따로 한 줄에.',
        check: '결과를 검산할 것.',
      },
      creative: {
        format: '시작과 끝이 있는 완성된 작품.',
        constraints: '생생하고 구체적인 묘사, 일관된 어조.',
      },
      planning: {
        steps: '순서대로, 각각의 목적과 함께.',
        scope: '시간과 수단에 대한 가정을 밝힐 것.',
        check: '위험 요소를 짚을 것.',
      },
      comparison: {
        format: '표로 정리하고 짧은 추천을 덧붙일 것.',
        scope: '선택에 중요한 기준.',
      },
    },
  },
} as const satisfies Readonly<Record<string, TypeWords>>
