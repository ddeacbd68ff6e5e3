from blurfit import demo


def test_demo_tells_what_is_promised_to_whom(capsys) -> None:
    demo.main()
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("differentially private") >= 4
    assert told.count("One submission alone") == 4
